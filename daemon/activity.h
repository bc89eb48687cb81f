// What the capture thread tells the other threads about requests. Atomics: written by one thread, read by any.

#pragma once

#include "metrics/base/time.h"

#include <atomic>
#include <cstdint>

namespace rooflined::daemon {

struct Activity {
  std::atomic<std::uint64_t> exchanges_in_flight{0};
  // Monotonic time at which a request was last seen in flight, in ns.
  std::atomic<std::int64_t> busy_at_ns{INT64_MIN};
  std::atomic<bool> ram_bound_target{false};
  std::atomic<bool> capture_up{false};
};

}  // namespace rooflined::daemon
