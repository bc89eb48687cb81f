// Sizes and rates. A raw number elsewhere carries its unit in its name.

#pragma once

#include <cstdint>

namespace rooflined {

using Bytes = std::uint64_t;
using BytesPerSecond = double;

constexpr Bytes kKiB = 1024;
constexpr Bytes kMiB = 1024 * kKiB;
constexpr Bytes kGiB = 1024 * kMiB;

}  // namespace rooflined
