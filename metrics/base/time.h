// The kinds of time, which do not convert into each other.
//
//   CaptureTime    the stamp on a packet: the kernel's wall clock (CLOCK_REALTIME) at the moment of capture
//   LineTime       CaptureTime plus the offset that the tap keeps: never steps back by more than a second, so a clock
//   set
//                  by hand does not make a negative interval. All stages behind the tap know this one only.
//   MonotonicTime  CLOCK_MONOTONIC: timers, schedules, abort latency
//   WallTime       shown to people, written into files
//
// All are 64-bit nanoseconds since their epoch. Stages hold no clock: they are handed one of these.

#pragma once

#include <chrono>
#include <cstdint>

namespace rooflined {

using Duration = std::chrono::nanoseconds;

struct CaptureEpoch {};
struct LineEpoch {};
struct MonotonicEpoch {};
struct WallEpoch {};

// A point in time whose tag says which clock made it. Only points of the same tag compare or subtract.
template <typename Tag>
class TimePoint {
 public:
  constexpr TimePoint() = default;
  constexpr explicit TimePoint(Duration since_epoch) : since_epoch_(since_epoch) {}
  static constexpr TimePoint from_ns(std::int64_t ns) { return TimePoint(Duration(ns)); }
  static constexpr TimePoint min() { return TimePoint(Duration::min()); }
  static constexpr TimePoint max() { return TimePoint(Duration::max()); }

  constexpr Duration since_epoch() const { return since_epoch_; }
  constexpr std::int64_t ns() const { return since_epoch_.count(); }

  friend constexpr auto operator<=>(TimePoint, TimePoint) = default;
  friend constexpr Duration operator-(TimePoint a, TimePoint b) { return a.since_epoch_ - b.since_epoch_; }
  friend constexpr TimePoint operator+(TimePoint t, Duration d) { return TimePoint(t.since_epoch_ + d); }
  friend constexpr TimePoint operator-(TimePoint t, Duration d) { return TimePoint(t.since_epoch_ - d); }
  constexpr TimePoint& operator+=(Duration d) {
    since_epoch_ += d;
    return *this;
  }

 private:
  Duration since_epoch_{0};
};

using CaptureTime = TimePoint<CaptureEpoch>;
using LineTime = TimePoint<LineEpoch>;
using MonotonicTime = TimePoint<MonotonicEpoch>;
using WallTime = TimePoint<WallEpoch>;

constexpr double to_seconds(Duration d) {
  return static_cast<double>(d.count()) * 1e-9;
}
constexpr Duration from_seconds(double seconds) {
  return Duration(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace rooflined
