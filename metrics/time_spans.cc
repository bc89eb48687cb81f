#include "metrics/time_spans.h"

#include <algorithm>

namespace rooflined {

void TimeSpans::add(LineTime a, LineTime b) {
  if (a >= b) return;
  // Most often it goes on where the last one ended.
  if (!spans_.empty() && spans_.back().from <= a && a <= spans_.back().to) {
    spans_.back().to = std::max(spans_.back().to, b);
    return;
  }
  auto first =
      std::lower_bound(spans_.begin(), spans_.end(), a, [](const Span& span, LineTime from) { return span.to < from; });
  auto last = first;
  for (; last != spans_.end() && last->from <= b; ++last) {
    a = std::min(a, last->from);
    b = std::max(b, last->to);
  }
  spans_.insert(spans_.erase(first, last), Span{a, b});
  if (spans_.size() > kSpansMax) {
    spans_[1].from = spans_[0].from;
    spans_.pop_front();
  }
}

std::deque<TimeSpans::Span>::const_iterator TimeSpans::ending_after(LineTime at) const {
  return std::upper_bound(spans_.begin(), spans_.end(), at,
                          [](LineTime from, const Span& other) { return from < other.to; });
}

std::optional<LineTime> TimeSpans::first_after(LineTime at) const {
  const auto span = ending_after(at);
  if (span == spans_.end()) return std::nullopt;
  return std::max(at, span->from);
}

bool TimeSpans::overlaps(LineTime a, LineTime b) const {
  const auto span = ending_after(a);
  return span != spans_.end() && span->from < b;
}

void TimeSpans::forget_before(LineTime limit) {
  while (!spans_.empty() && spans_.front().to <= limit) spans_.pop_front();
}

}  // namespace rooflined
