// The clocks of the operating system. Only the daemon's loops ask them; stages are handed times.

#pragma once

#include "metrics/base/time.h"

#include <chrono>
#include <ctime>

namespace rooflined::daemon {

inline MonotonicTime monotonic_now() {
  return MonotonicTime(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

inline WallTime wall_now() {
  return WallTime(std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()));
}

// What the calling thread has used of a processor.
inline Duration thread_cpu_time() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace rooflined::daemon
