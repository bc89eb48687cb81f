#include "metrics/rolling_window.h"

#include <algorithm>

namespace rooflined {
namespace {

// Beyond the span: settling and late corrections lag behind the newest slice.
constexpr std::int64_t kSlicesMore = 40;

WindowSums sums_of(const IntervalRecord& record) {
  WindowSums sums;
  sums.output_tokens = record.tokens;
  sums.decode_tokens = record.tokens;
  sums.sequence_seconds = record.sequence_seconds;
  sums.busy_seconds = record.busy_seconds;
  sums.context = record.context_sum;
  if (record.bytes_known) {
    sums.bytes = record.bytes();
    sums.billed_busy_seconds = record.busy_seconds;
    sums.billed_decode_tokens = record.tokens;
  }
  return sums;
}

}  // namespace

void WindowSums::add(const WindowSums& other, double share) {
  output_tokens += share * other.output_tokens;
  decode_tokens += share * other.decode_tokens;
  sequence_seconds += share * other.sequence_seconds;
  busy_seconds += share * other.busy_seconds;
  billed_busy_seconds += share * other.billed_busy_seconds;
  billed_decode_tokens += share * other.billed_decode_tokens;
  bytes += share * other.bytes;
  context += share * other.context;
  estimated_tokens += share * other.estimated_tokens;
  segments += share * other.segments;
  merged_segments += share * other.merged_segments;
}

RollingWindow::RollingWindow(Duration span_max) : ring_(static_cast<std::size_t>(span_max / kSlice + kSlicesMore)) {}

std::int64_t RollingWindow::index_of(LineTime at) {
  const std::int64_t slice_ns = Duration(kSlice).count();
  return at.ns() / slice_ns - (at.ns() % slice_ns < 0 ? 1 : 0);
}

RollingWindow::Slice* RollingWindow::slice(std::int64_t index) {
  const auto size = static_cast<std::int64_t>(ring_.size());
  newest_ = std::max(newest_, index);
  if (index <= newest_ - size) return nullptr;
  Slice& slice = ring_[static_cast<std::size_t>(((index % size) + size) % size)];
  if (slice.index != index) {
    slice.index = index;
    slice.sums = WindowSums();
    slice.latencies.clear();
    slice.lossy = false;
  }
  return &slice;
}

void RollingWindow::spread(LineTime a, LineTime b, const WindowSums& sums) {
  const std::int64_t last = index_of(b);
  const std::int64_t oldest = std::max(last, newest_) - static_cast<std::int64_t>(ring_.size()) + 1;
  const std::int64_t first = std::max(index_of(a), oldest);
  if (first >= last) {
    if (Slice* place = slice(last)) place->sums.add(sums);
    return;
  }
  const std::int64_t slice_ns = Duration(kSlice).count();
  const double whole = static_cast<double>((b - a).count());
  for (std::int64_t index = first; index <= last; ++index) {
    const std::int64_t from = std::max(a.ns(), index * slice_ns);
    const std::int64_t to = std::min(b.ns(), (index + 1) * slice_ns);
    if (Slice* place = slice(index)) place->sums.add(sums, static_cast<double>(to - from) / whole);
  }
}

void RollingWindow::add_first_tokens(LineTime at, double tokens) {
  WindowSums sums;
  sums.output_tokens = tokens;
  spread(at, at, sums);
}

void RollingWindow::add_interval(const IntervalRecord& record) {
  spread(record.a, record.b, sums_of(record));
  Slice* place = slice(index_of(record.b));
  if (place == nullptr) return;
  place->sums.segments += 1;
  if (record.frames > 1) place->sums.merged_segments += 1;
  place->latencies.add(record.sequence_seconds / record.tokens, record.tokens);
}

void RollingWindow::add_correction(const IntervalRecord& record) {
  spread(record.a, record.b, sums_of(record));
}

void RollingWindow::add_estimated(LineTime first, LineTime last, double tokens) {
  WindowSums sums;
  sums.estimated_tokens = tokens;
  spread(first, last, sums);
}

void RollingWindow::add_loss(LineTime at) {
  if (Slice* place = slice(index_of(at))) place->lossy = true;
}

RollingWindow::View RollingWindow::view(LineTime end, Duration span, LineTime began) const {
  View view;
  const auto size = static_cast<std::int64_t>(ring_.size());
  const std::int64_t end_index = index_of(end);  // the slice that is not whole yet
  const std::int64_t first = std::max(end_index - span / kSlice, index_of(began));
  view.seconds = static_cast<double>(std::max<std::int64_t>(0, end_index - first)) * to_seconds(kSlice);
  for (std::int64_t index = first; index < end_index; ++index) {
    const Slice& slice = ring_[static_cast<std::size_t>(((index % size) + size) % size)];
    if (slice.index != index) continue;
    view.sums.add(slice.sums);
    view.latencies.add(slice.latencies);
    view.lossy = view.lossy || slice.lossy;
  }
  return view;
}

}  // namespace rooflined
