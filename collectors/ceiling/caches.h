// The size of all last-level caches together: what the working set has to be several times larger than.
//
// From /sys, one entry for each set of CPUs that share a cache; where /sys has none, from the processor itself (x86:
// CPUID leaf 4, AMD leaf 0x8000001D). Arm processors do not tell a program. Threads: any.

#pragma once

#include "metrics/base/units.h"

#include <cstdint>
#include <optional>
#include <string>

namespace rooflined::ceiling {

// Absent when neither the system nor the processor says. The processor is asked only where `root` is "/".
std::optional<Bytes> read_llc_bytes(const std::string& root);

// One subleaf of CPUID leaf 4 (Intel SDM vol. 2A, CPUID): the size of one cache, and how many logical CPUs may share
// it.
struct CacheLeaf {
  unsigned level = 0;
  bool instruction = false;
  Bytes size = 0;
  unsigned sharing_cpus = 1;
};
std::optional<CacheLeaf> decode_cache_leaf(std::uint32_t eax, std::uint32_t ebx, std::uint32_t ecx);

}  // namespace rooflined::ceiling
