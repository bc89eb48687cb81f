#include "collectors/ceiling/cache_probes.h"

#include <algorithm>
#include <cmath>

namespace rooflined::ceiling {
namespace {

constexpr double kCacheMultiple = 4;
constexpr double kStepsPerOctave = 4;
// Within this the two probes are the same memory, measured twice (design.md §4).
constexpr double kAssistedAbove = 1.15;

}  // namespace

std::optional<Bytes> cache_probe_size(double bytes_per_pass, Bytes llc_bytes) {
  if (!(bytes_per_pass >= static_cast<double>(kMiB))) return std::nullopt;
  if (bytes_per_pass >= kCacheMultiple * static_cast<double>(llc_bytes)) return std::nullopt;
  const double steps = std::round(kStepsPerOctave * std::log2(bytes_per_pass / static_cast<double>(kMiB)));
  return static_cast<Bytes>(std::exp2(steps / kStepsPerOctave)) * kMiB;
}

void CacheProbes::add(const CacheProbe& probe) {
  std::erase_if(probes_, [&probe](const CacheProbe& other) { return other.working_set == probe.working_set; });
  probes_.push_back(probe);
  if (probes_.size() > kCacheProbesKept) probes_.erase(probes_.begin());
}

const CacheProbe* CacheProbes::find(Bytes working_set) const {
  const auto found = std::find_if(probes_.begin(), probes_.end(),
                                  [working_set](const CacheProbe& probe) { return probe.working_set == working_set; });
  return found == probes_.end() ? nullptr : &*found;
}

bool cache_assisted(const CacheProbe& probe, BytesPerSecond ceiling) {
  return probe.ceiling > kAssistedAbove * ceiling;
}

}  // namespace rooflined::ceiling
