// The kernels: the loops that are timed, each with the bytes that it declares to move.
//
//   in:   `streams` runs of `count` words, run s beginning at base + s * stride
//   out:  a checksum, so that no load can be left out, and so that every kernel agrees with a scalar reference
//
// A call is short (a block, see workers.h): the caller looks at the stop page between calls. Highway compiles every
// loop for every instruction set, and the machine's best is taken at run time. Threads: a kernel has no state.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::ceiling {

using KernelFunction = std::uint64_t (*)(std::uint64_t* base, std::size_t stride, std::size_t count);

// An element is one word at the same place of each stream.
struct Kernel {
  std::string_view name;
  unsigned streams;
  unsigned bytes_read;     // per element
  unsigned bytes_written;  // per element
  // The stores go around the caches where the machine has such stores (x86), so no line is read before it is written.
  bool stores_non_temporal;
  bool counts;  // may become the ceiling; the others are reported only
};

// The order is the order of the sweep: the likely winner first, so that a sweep cut short by its budget loses least.
// Where two cores cannot fill the memory, few interleaved streams gave +6 % in the median and +16 % and more in the
// best over one stream on one machine (an EPYC of 2021), and with prefetching 1 KiB ahead +5 to +15 % over plain loads
// on another; machines whose hardware prefetchers do better have the plain loop. The more streams, the shorter the
// distance: all of them share the first cache.
inline constexpr std::array<Kernel, 9> kKernels = {{
    {"streams4", 4, 32, 0, false, true},
    {"streams8", 8, 64, 0, false, true},
    {"streams2", 2, 16, 0, false, true},
    {"streams2_prefetch", 2, 16, 0, false, true},
    {"streams8_prefetch", 8, 64, 0, false, true},
    {"streams4_prefetch", 4, 32, 0, false, true},
    {"dot", 2, 16, 0, false, true},
    {"linear", 1, 8, 0, false, true},
    {"copy", 2, 8, 8, true, false},
}};
inline constexpr std::size_t kCopyKernel = kKernels.size() - 1;

// In the order of kKernels.
using KernelFunctions = std::array<KernelFunction, kKernels.size()>;

// Of the best instruction set of this machine.
const KernelFunctions& kernel_functions();

// All instruction sets of this machine that the loops were compiled for, best first, and the kernels of one of them.
// Requires for both: no other thread is in here (they change what Highway takes for supported).
std::vector<std::string> instruction_sets();
const KernelFunctions* kernel_functions_for(std::string_view instruction_set);

}  // namespace rooflined::ceiling
