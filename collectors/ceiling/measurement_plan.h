// Decides when to measure, and what: the idle windows and the schedule put together.
//
//   in:   looks at the wire and the host, twice a second; how each measurement ended
//   out:  an order to measure now, or none
//
// The first time all kernels and thread counts are tried. Later measurements start from the winner and prove it against
// its neighbours; a result in doubt has the winner's cell alone run again in a later window, once. No clock, no I/O, no
// thread: a test runs days through it. Threads: one at a time.

#pragma once

#include "collectors/ceiling/history.h"
#include "collectors/ceiling/idle_window.h"
#include "collectors/ceiling/schedule.h"
#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <cstdint>
#include <optional>

namespace rooflined::ceiling {

// How a measurement ended, in the order of rooflined_ceiling_measurements_total{result}.
enum class Outcome : std::uint8_t {
  kAdopted,   // counts from now on
  kUnstable,  // not stable, or others used the memory meanwhile
  kSuspect,   // stable, and far from the adopted ceiling: waits for a second one
  kAborted,   // a request came, no room, the daemon stops
};

class MeasurementPlan {
 public:
  struct Options {
    Duration interval = std::chrono::hours(6);
    Duration idle_for = std::chrono::seconds(60);
    std::uint64_t seed = 0;  // of the jitter
  };
  struct Order {
    Schedule::Kind kind = Schedule::Kind::kFirst;
    Bytes working_set = 0;  // of kCache; 0: as chosen from the machine
  };

  // `age`: of the newest result kept, absent without any.
  MeasurementPlan(const Options& options, MonotonicTime now, std::optional<Duration> age);

  // `wanted`: measuring is asked for at all. `cache_size`: a working set that wants a probe of its own.
  std::optional<Order> look(MonotonicTime now, const IdleWindow::Look& look, bool wanted, const History& history,
                            std::optional<Bytes> cache_size);
  // `history`: with the result, where there was one.
  void ended(MonotonicTime now, const Order& order, Duration took, Outcome outcome, const History& history);
  // After ended(): it came to nothing because the doorbell could not hear.
  void doorbell_failed() { window_.deaf_until(schedule_.retry_at()); }
  // Somebody doubts the memory: the winner's cell runs once in the next idle window.
  void ask_again() { asked_for_ = true; }
  // A result that another program wrote into the state file.
  void result_came(MonotonicTime now) { schedule_.restart_interval(now); }
  void set_options(const Options& options, MonotonicTime now);

  const IdleWindow& window() const { return window_; }
  double credit(MonotonicTime now) const { return schedule_.credit(now); }

 private:
  std::optional<Schedule::Kind> due(MonotonicTime now, const History& history, bool cache_wanted) const;

  Options options_;
  IdleWindow window_;
  Schedule schedule_;
  bool asked_for_ = false;
  bool asked_again_ = false;  // about the newest result, which is suspect
};

}  // namespace rooflined::ceiling
