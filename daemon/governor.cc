#include "daemon/governor.h"

#include <algorithm>

namespace rooflined::daemon {
namespace {

// Twice the flows cost at most twice as much: below half the limit, with some room.
constexpr double kCalmShare = 0.4;
constexpr unsigned kCalmLooks = 6;

}  // namespace

std::optional<unsigned> Governor::observe(MonotonicTime now, Duration cpu_used) {
  if (looked_at_ && now - *looked_at_ < kLookEvery) return std::nullopt;
  const std::optional<MonotonicTime> before = looked_at_;
  const Duration used = cpu_used - used_before_;
  looked_at_ = now;
  used_before_ = cpu_used;
  if (!before) return std::nullopt;
  const double share = to_seconds(used) / to_seconds(now - *before);
  const unsigned one_in_before = one_in_;
  if (share > cpu_max_) {
    calm_looks_ = 0;
    while (one_in_ < kOneInMax && share * one_in_before > cpu_max_ * one_in_) one_in_ *= 2;
  } else if (share < kCalmShare * cpu_max_) {
    if (one_in_ > 1 && ++calm_looks_ >= kCalmLooks) {
      calm_looks_ = 0;
      one_in_ /= 2;
    }
  } else {
    calm_looks_ = 0;
  }
  if (one_in_ == one_in_before) return std::nullopt;
  return one_in_;
}

}  // namespace rooflined::daemon
