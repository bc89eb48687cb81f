// The loops, compiled once per instruction set. Only the tables at the end are visible elsewhere.
//
// Sixteen accumulators, written out: vectors of Arm SVE have no size at compile time and so cannot be array elements.
// Sixteen chains of additions hide the latency of the adder many times over; what is left is the memory.

#include "collectors/ceiling/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectors/ceiling/kernel_loops.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <hwy/cache_control.h>

HWY_BEFORE_NAMESPACE();
namespace rooflined::ceiling {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint64_t>;
using HalfWords = hn::ScalableTag<std::uint32_t>;

constexpr std::size_t kAccumulators = 16;
constexpr std::size_t kLineBytes = 64;

// Asks for the lines of [at, at + bytes) that lie `ahead` bytes further on. Beyond the end of the buffer this is
// harmless: a prefetch never faults.
template <std::size_t ahead>
HWY_INLINE void prefetch(const std::uint64_t* HWY_RESTRICT at, std::size_t bytes) {
  if constexpr (ahead > 0) {
    const char* const line = reinterpret_cast<const char*>(at) + ahead;
    for (std::size_t offset = 0; offset < bytes; offset += kLineBytes) hwy::Prefetch(line + offset);
  }
}

// The lanes added up, modulo 2^n. (Highway's SumOfLanes adds them as signed numbers in some compilers' headers, which
// overflows.)
template <typename D, typename V>
HWY_INLINE hn::TFromD<D> lanes_added(D d, V v) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  hn::TFromD<D> total = 0;
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) total += lanes[i];
  return total;
}

// Sum of all words modulo 2^64.
template <std::size_t streams, std::size_t ahead>
std::uint64_t sum(std::uint64_t* base, std::size_t stride, std::size_t count) {
  static_assert(kAccumulators % streams == 0);
  constexpr std::size_t kPerStream = kAccumulators / streams;
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t step = kPerStream * lanes;
  const std::uint64_t* HWY_RESTRICT at = base;
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  auto b0 = a0, b1 = a0, b2 = a0, b3 = a0, b4 = a0, b5 = a0, b6 = a0, b7 = a0;
  std::size_t i = 0;
  for (; i + step <= count; i += step, at += step) {
    for (std::size_t s = 0; s < streams; ++s) prefetch<ahead>(at + s * stride, step * sizeof(std::uint64_t));
    a0 = hn::Add(a0, hn::LoadU(d, at));
    a1 = hn::Add(a1, hn::LoadU(d, at + 1 / kPerStream * stride + 1 % kPerStream * lanes));
    a2 = hn::Add(a2, hn::LoadU(d, at + 2 / kPerStream * stride + 2 % kPerStream * lanes));
    a3 = hn::Add(a3, hn::LoadU(d, at + 3 / kPerStream * stride + 3 % kPerStream * lanes));
    a4 = hn::Add(a4, hn::LoadU(d, at + 4 / kPerStream * stride + 4 % kPerStream * lanes));
    a5 = hn::Add(a5, hn::LoadU(d, at + 5 / kPerStream * stride + 5 % kPerStream * lanes));
    a6 = hn::Add(a6, hn::LoadU(d, at + 6 / kPerStream * stride + 6 % kPerStream * lanes));
    a7 = hn::Add(a7, hn::LoadU(d, at + 7 / kPerStream * stride + 7 % kPerStream * lanes));
    b0 = hn::Add(b0, hn::LoadU(d, at + 8 / kPerStream * stride + 8 % kPerStream * lanes));
    b1 = hn::Add(b1, hn::LoadU(d, at + 9 / kPerStream * stride + 9 % kPerStream * lanes));
    b2 = hn::Add(b2, hn::LoadU(d, at + 10 / kPerStream * stride + 10 % kPerStream * lanes));
    b3 = hn::Add(b3, hn::LoadU(d, at + 11 / kPerStream * stride + 11 % kPerStream * lanes));
    b4 = hn::Add(b4, hn::LoadU(d, at + 12 / kPerStream * stride + 12 % kPerStream * lanes));
    b5 = hn::Add(b5, hn::LoadU(d, at + 13 / kPerStream * stride + 13 % kPerStream * lanes));
    b6 = hn::Add(b6, hn::LoadU(d, at + 14 / kPerStream * stride + 14 % kPerStream * lanes));
    b7 = hn::Add(b7, hn::LoadU(d, at + 15 / kPerStream * stride + 15 % kPerStream * lanes));
  }
  a0 = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(hn::Add(a4, a5), hn::Add(a6, a7)));
  b0 = hn::Add(hn::Add(hn::Add(b0, b1), hn::Add(b2, b3)), hn::Add(hn::Add(b4, b5), hn::Add(b6, b7)));
  std::uint64_t total = lanes_added(d, hn::Add(a0, b0));
  for (; i < count; ++i, ++at) {
    for (std::size_t s = 0; s < streams; ++s) total += at[s * stride];
  }
  return total;
}

// Product of two arrays of 32-bit halves, summed modulo 2^32. (64-bit products cost several instructions before
// AVX-512.)
template <std::size_t ahead>
std::uint64_t dot(std::uint64_t* base, std::size_t stride, std::size_t count) {
  const HalfWords d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t words = lanes / 2;
  const std::size_t step = 8 * words;
  const std::uint64_t* HWY_RESTRICT x = base;
  const std::uint64_t* HWY_RESTRICT y = base + stride;
  const auto product = [&](std::size_t j) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(x + j * words)),
                   hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(y + j * words)));
  };
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  std::size_t i = 0;
  for (; i + step <= count && step > 0; i += step, x += step, y += step) {
    prefetch<ahead>(x, step * sizeof(std::uint64_t));
    prefetch<ahead>(y, step * sizeof(std::uint64_t));
    a0 = hn::Add(a0, product(0));
    a1 = hn::Add(a1, product(1));
    a2 = hn::Add(a2, product(2));
    a3 = hn::Add(a3, product(3));
    a4 = hn::Add(a4, product(4));
    a5 = hn::Add(a5, product(5));
    a6 = hn::Add(a6, product(6));
    a7 = hn::Add(a7, product(7));
  }
  a0 = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(hn::Add(a4, a5), hn::Add(a6, a7)));
  std::uint32_t total = lanes_added(d, a0);
  for (; i < count; ++i, ++x, ++y) {
    total += static_cast<std::uint32_t>(*x) * static_cast<std::uint32_t>(*y);
    total += static_cast<std::uint32_t>(*x >> 32) * static_cast<std::uint32_t>(*y >> 32);
  }
  return total;
}

// Copies the first stream over the second, around the caches where the machine can, and gives the sum of what it
// copied.
std::uint64_t copy(std::uint64_t* base, std::size_t stride, std::size_t count) {
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  const std::uint64_t* HWY_RESTRICT from = base;
  std::uint64_t* HWY_RESTRICT to = base + stride;
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  std::uint64_t total = 0;
  std::size_t i = 0;
  // Non-temporal stores fault unless they are aligned.
  for (; i < count && reinterpret_cast<std::uintptr_t>(to + i) % (lanes * sizeof(std::uint64_t)) != 0; ++i) {
    total += to[i] = from[i];
  }
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto v0 = hn::LoadU(d, from + i), v1 = hn::LoadU(d, from + i + lanes);
    const auto v2 = hn::LoadU(d, from + i + 2 * lanes), v3 = hn::LoadU(d, from + i + 3 * lanes);
    hn::Stream(v0, d, to + i);
    hn::Stream(v1, d, to + i + lanes);
    hn::Stream(v2, d, to + i + 2 * lanes);
    hn::Stream(v3, d, to + i + 3 * lanes);
    a0 = hn::Add(a0, v0);
    a1 = hn::Add(a1, v1);
    a2 = hn::Add(a2, v2);
    a3 = hn::Add(a3, v3);
  }
  for (; i < count; ++i) total += to[i] = from[i];
  hwy::FlushStream();
  return total + lanes_added(d, hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)));
}

const KernelFunctions* table() {
  static constexpr KernelFunctions kTable = {sum<4, 0>,   sum<8, 0>, sum<2, 0>, sum<2, 1024>, sum<8, 256>,
                                             sum<4, 512>, dot<0>,    sum<1, 0>, copy};
  return &kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace rooflined::ceiling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rooflined::ceiling {

HWY_EXPORT(table);

const KernelFunctions& kernel_functions() {
  return *HWY_DYNAMIC_DISPATCH(table)();
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

const KernelFunctions* kernel_functions_for(std::string_view instruction_set) {
  const KernelFunctions* found = nullptr;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (hwy::TargetName(target) != instruction_set) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    found = HWY_DYNAMIC_DISPATCH(table)();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
  return found;
}

}  // namespace rooflined::ceiling
#endif  // HWY_ONCE
