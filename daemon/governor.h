// Keeps what watching costs under a share of one core: says which part of the flows to watch.
//
//   in:   now and then, the time and what the capture thread has used of a processor so far
//   out:  one flow in how many: a power of two
//
// Halves the flows as soon as a look of some seconds is over the limit; doubles them again only after half a minute far
// below it, so that it does not swing. No clock. Threads: one.

#pragma once

#include "metrics/base/time.h"

#include <chrono>
#include <optional>

namespace rooflined::daemon {

class Governor {
 public:
  static constexpr Duration kLookEvery = std::chrono::seconds(5);
  static constexpr unsigned kOneInMax = 64;

  // `cpu_max`: of one core, 0 to 1.
  explicit Governor(double cpu_max) : cpu_max_(cpu_max) {}

  void set_cpu_max(double cpu_max) { cpu_max_ = cpu_max; }

  // A new value where it changes.
  std::optional<unsigned> observe(MonotonicTime now, Duration cpu_used);

  unsigned one_in() const { return one_in_; }

 private:
  double cpu_max_;
  unsigned one_in_ = 1;
  unsigned calm_looks_ = 0;
  std::optional<MonotonicTime> looked_at_;
  Duration used_before_{0};
};

}  // namespace rooflined::daemon
