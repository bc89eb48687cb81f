// A set of line time: the union of spans that come in about their order.
//
// Bounded: beyond kSpansMax the oldest gap is closed, which makes the set larger, never smaller. Not thread-safe.

#pragma once

#include "metrics/base/time.h"

#include <cstddef>
#include <deque>
#include <optional>

namespace rooflined {

class TimeSpans {
 public:
  static constexpr std::size_t kSpansMax = 4096;

  // Requires: a ≤ b. An empty span is none.
  void add(LineTime a, LineTime b);
  // Whether any of (a, b] is in the set.
  bool overlaps(LineTime a, LineTime b) const;
  // The first instant of the set that is not before `at`; absent where it ends earlier.
  std::optional<LineTime> first_after(LineTime at) const;
  void forget_before(LineTime limit);
  bool empty() const { return spans_.empty(); }

 private:
  struct Span {
    LineTime from;
    LineTime to;
  };

  std::deque<Span>::const_iterator ending_after(LineTime at) const;

  std::deque<Span> spans_;  // ascending, apart from each other
};

}  // namespace rooflined
