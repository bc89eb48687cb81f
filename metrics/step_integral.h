// A whole-numbered step function of line time, and its integral: how many sequences are in decode, or whether a prefill
// runs.
//
// Steps may be added in the past (a sequence is found to have left at its last token event); queries ask for the
// integral over (a, b]. Steps are few beside tokens: two a sequence. Bounded by forget_before(). Not thread-safe.

#pragma once

#include "metrics/base/time.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rooflined {

class StepIntegral {
 public:
  enum class Kind : std::uint8_t {
    kValue,      // integrates the value
    kIndicator,  // integrates 1 where the value is above 0
  };

  explicit StepIntegral(Kind kind) : kind_(kind) {}

  // The value changes by `delta` at `at`. Requires: `at` is not before the last forget_before().
  void add(LineTime at, std::int64_t delta);

  // Value just after `at`.
  std::int64_t value_at(LineTime at) const;
  // Integral over (from, to] in value × nanoseconds. Requires: from ≤ to.
  double integral(LineTime from, LineTime to) const;

  // Drops the steps before `limit`; their sum stays as the base.
  void forget_before(LineTime limit);
  std::size_t size() const { return steps_.size(); }

 private:
  struct Step {
    LineTime at;
    std::int64_t value;        // from here on
    std::uint64_t cumulative;  // integral up to here; wraps, and only differences are used
  };

  std::uint64_t height(std::int64_t value) const {
    if (value <= 0) return 0;
    return kind_ == Kind::kIndicator ? 1 : static_cast<std::uint64_t>(value);
  }
  // The last step at or before `at`; nullptr before the first one.
  const Step* step_at(LineTime at) const;
  std::uint64_t cumulative_at(LineTime at) const;
  void recompute_from(std::size_t index);

  Kind kind_;
  mutable std::size_t last_ = 0;  // where the last look ended: the next one is most often there, or near
  std::vector<Step> steps_;       // ascending in time, no two at the same time
};

}  // namespace rooflined
