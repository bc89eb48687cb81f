// When a measurement is due: interval and jitter, pauses after failures, and never more than a thousandth of the time.
//
//   in:   monotonic times, what each measurement took and how it ended
//   out:  whether one of a kind may start now
//
// Monotonic time only: a clock that is set, or a machine that sleeps, moves nothing. No clock of its own, no I/O; the
// jitter is a function of the seed. Threads: one.

#pragma once

#include "metrics/base/time.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace rooflined::ceiling {

// Share of the time that may be spent measuring, and what is there for a first start (design.md §4).
inline constexpr double kDutyMax = 0.001;
inline constexpr Duration kCreditFirst = std::chrono::seconds(30);
inline constexpr double kJitter = 0.1;
// A disturbance of a shared host lasts minutes: a second opinion within it would share it.
inline constexpr Duration kAgainAfter = std::chrono::minutes(5);

class Schedule {
 public:
  enum class Kind : std::uint8_t {
    kFirst,    // no ceiling yet: at once
    kAgain,    // a second opinion on the last result: in a later window
    kRegular,  // after the interval
    kCache,    // of a model's size, beside the ceiling: whenever there is credit
  };

  // `age`: of the newest result kept, absent without any. With one, the credit is what its age has earned.
  Schedule(Duration interval, std::uint64_t seed, MonotonicTime now, std::optional<Duration> age);

  bool due(Kind kind, MonotonicTime now) const;
  // A measurement ended. `succeeded`: it brought a result, adopted or suspect; otherwise the next one waits, each time
  // twice as long. After a first or a regular one that did, the next regular one is an interval away.
  void ended(Kind kind, MonotonicTime now, Duration took, bool succeeded);
  // New settings: the next regular one is an interval after the last; pauses after failures are over.
  void set_interval(Duration interval, MonotonicTime now);
  // Somebody else's result came in (`membw --adopt`): the next regular one is an interval away.
  void restart_interval(MonotonicTime now);

  MonotonicTime retry_at() const { return retry_at_; }
  // Seconds of measuring that are left now; negative while a long one is paid off.
  double credit(MonotonicTime now) const;

 private:
  double jittered();

  Duration interval_;
  std::uint64_t random_;
  MonotonicTime last_end_;
  MonotonicTime regular_at_;
  MonotonicTime retry_at_;
  MonotonicTime credit_at_;
  double credit_;
  unsigned failures_ = 0;
  // What one of each kind took last: it does not start before so much has been earned.
  std::array<double, 4> cost_ = {15, 5, 10, 3};
};

}  // namespace rooflined::ceiling
