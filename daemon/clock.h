// The clocks of the operating system. Only the daemon's loops ask them; stages are handed times.

#pragma once

#include "metrics/base/time.h"

#include <chrono>

namespace rooflined::daemon {

inline MonotonicTime monotonic_now() {
  return MonotonicTime(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

inline WallTime wall_now() {
  return WallTime(std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()));
}

}  // namespace rooflined::daemon
