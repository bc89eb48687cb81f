// Models that are small enough for the caches: what the memory delivers over a working set of their size.
//
// A decode pass reads a model from end to end; of one smaller than four times the last-level caches they may serve a
// part, and its MBU then reads high. A second probe over that many bytes tells. Sizes are rounded to quarter octaves,
// so that models of like size share a probe. Bounded: the eight newest. Plain data; threads: one at a time.

#pragma once

#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace rooflined::ceiling {

inline constexpr std::size_t kCacheProbesKept = 8;

struct CacheProbe {
  WallTime measured_at;
  Bytes working_set = 0;  // as probe_size() rounds it
  BytesPerSecond ceiling = 0;
};

// Absent where a pass of so many bytes is no matter for the caches: at least four times `llc_bytes`, or less than a
// probe can tell from its overhead (a MiB).
std::optional<Bytes> cache_probe_size(double bytes_per_pass, Bytes llc_bytes);

class CacheProbes {
 public:
  void add(const CacheProbe& probe);
  const CacheProbe* find(Bytes working_set) const;
  const std::vector<CacheProbe>& all() const { return probes_; }  // oldest first

 private:
  std::vector<CacheProbe> probes_;
};

// The caches serve part of what a working set of this size reads.
bool cache_assisted(const CacheProbe& probe, BytesPerSecond ceiling);

}  // namespace rooflined::ceiling
