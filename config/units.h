// Durations and sizes as people write them: "500ms", "60s", "1.5h", "7d"; "2GiB", "64MB", "204.8GB/s".
// Thread rule: pure functions.

#pragma once

#include "metrics/base/time.h"

#include <optional>
#include <string_view>

namespace rooflined::config {

// A number and one unit of ms, s, m, h, d, w. Not negative, at most a hundred years.
std::optional<Duration> parse_duration(std::string_view text);

// A number and a unit of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB (none: bytes), with or without "/s". Not negative,
// finite.
std::optional<double> parse_bytes(std::string_view text);

}  // namespace rooflined::config
