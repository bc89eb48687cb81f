#include "metrics/pace_history.h"

#include <algorithm>

namespace rooflined {
namespace {

constexpr std::int64_t kSliceNs = 1'000'000'000;
constexpr std::int64_t kSlices = 600;
// Weight of a new interval in the pace of late: some fifty token events.
constexpr double kRate = 0.02;

std::int64_t index_of(std::int64_t ns) {
  return ns / kSliceNs - (ns % kSliceNs < 0 ? 1 : 0);
}

std::size_t place_of(std::int64_t index) {
  return static_cast<std::size_t>(((index % kSlices) + kSlices) % kSlices);
}

}  // namespace

PaceHistory::PaceHistory() : ring_(kSlices) {}

void PaceHistory::add(LineTime at, double tokens, double seconds) {
  if (tokens <= 0 || seconds <= 0) return;
  const std::int64_t index = index_of(at.ns());
  Slice& place = ring_[place_of(index)];
  if (place.index > index) return;  // older than the ring
  if (place.index != index) place = Slice{index};
  place.tokens += tokens;
  place.seconds += seconds;
  const double pace = seconds / tokens;
  pace_ = pace_ == 0 ? pace : pace_ + kRate * (pace - pace_);
}

LineTime PaceHistory::start_of(LineTime end, LineTime earliest, double tokens) const {
  if (pace_ == 0 || end <= earliest) return std::min(end, earliest);
  double left = tokens;
  double pace = pace_;
  std::int64_t until = end.ns();
  while (until > earliest.ns()) {
    // A time on a slice's edge belongs to the slice before it.
    const std::int64_t index = index_of(until - 1);
    const Slice& place = ring_[place_of(index)];
    if (place.index == index) pace = place.seconds / place.tokens;
    const std::int64_t from = std::max(earliest.ns(), index * kSliceNs);
    const double borne = static_cast<double>(until - from) * 1e-9 / pace;
    if (borne >= left) return LineTime::from_ns(until - static_cast<std::int64_t>(left * pace * 1e9));
    left -= borne;
    until = from;
  }
  return earliest;
}

}  // namespace rooflined
