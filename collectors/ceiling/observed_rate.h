// The ceiling of a node that is never idle: the highest decode rate it was seen to keep up for ten seconds.
//
//   in:   the node's decode rate over the last ten seconds, about once a second; idle windows
//   out:  the highest of them, once there was no idle window for a day; from then on for good
//
// A lower bound that depends on the server: good for the node's own trend, never for comparing nodes. No clock;
// threads: one at a time.

#pragma once

#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace rooflined::ceiling {

class ObservedRate {
 public:
  static constexpr Duration kAfter = std::chrono::hours(24);

  // What a restart must not lose.
  struct Kept {
    Duration without_idle{0};  // kAfter or more: a ceiling from then on
    BytesPerSecond highest = 0;
  };

  explicit ObservedRate(MonotonicTime began) : ObservedRate(began, Kept()) {}
  // The time that the program did not run counts neither as idle nor as busy.
  ObservedRate(MonotonicTime began, const Kept& kept)
      : idle_at_(began - std::min(kept.without_idle, kAfter)),
        highest_(kept.highest),
        starved_(kept.without_idle >= kAfter) {}

  void see(MonotonicTime now, BytesPerSecond rate) {
    highest_ = std::max(highest_, rate);
    starved_ = starved_ || now - idle_at_ >= kAfter;
  }
  void idle(MonotonicTime now) { idle_at_ = now; }

  std::optional<BytesPerSecond> ceiling() const {
    return starved_ && highest_ > 0 ? std::optional(highest_) : std::nullopt;
  }
  Kept kept(MonotonicTime now) const { return {starved_ ? kAfter : now - idle_at_, highest_}; }

 private:
  MonotonicTime idle_at_;
  BytesPerSecond highest_ = 0;
  bool starved_ = false;
};

}  // namespace rooflined::ceiling
