#include "collectors/tap/line_clock.h"

#include <algorithm>

namespace rooflined::tap {

namespace {

// A damaged file may hold any stamp. Within these bounds (years 1970 to 2043, and twice that for their sums) nothing
// below overflows.
constexpr Duration kStampMax{std::int64_t{1} << 61};
constexpr LineTime kLineMax = LineTime::from_ns(std::int64_t{1} << 62);

}  // namespace

void LineClock::observe(MonotonicTime now) {
  if (!read_) {
    read_ = Read{now, now};
    lead_span_began_ = now;
    latest_read_ = *read_;
    return;
  }
  read_ = Read{read_->began, std::max(now, read_->began)};
}

LineTime LineClock::stamp(CaptureTime captured_at) {
  const Duration stamp = std::clamp(captured_at.since_epoch(), Duration(0), kStampMax);
  LineTime at = std::min(LineTime(stamp + offset_), kLineMax);
  if (latest_ && is_step(at)) {
    at = std::min(*latest_ + (read_ ? read_->began - latest_read_.began : Duration(0)), kLineMax);
    offset_ = at.since_epoch() - stamp;
    ++steps_;
  }
  if (!latest_ || at >= *latest_) {
    latest_ = at;
    if (read_) latest_read_ = *read_;
  }
  if (read_) learn_lead(at);
  return at;
}

bool LineClock::is_step(LineTime at) const {
  const Duration elapsed = at - *latest_;
  if (!read_) return elapsed < -kStepMin;
  const bool same_read = read_->began == latest_read_.began;
  // The span of monotonic time in which both packets were captured bounds how far apart they can be.
  const Duration elapsed_max = read_->began - latest_read_.began_before + kDeliveryMax;
  const Duration elapsed_min = same_read ? Duration(0) : read_->began_before - latest_read_.began - kDeliveryMax;
  return elapsed > elapsed_max + kStepMin || elapsed < std::max(elapsed_min, Duration(0)) - kStepMin;
}

void LineClock::learn_lead(LineTime at) {
  if (read_->began - lead_span_began_ > kLeadSpan) {
    lead_previous_ = lead_running_;
    lead_running_ = Duration::min();
    lead_span_began_ = read_->began;
  }
  lead_running_ = std::max(lead_running_, at.since_epoch() - read_->began.since_epoch());
}

std::optional<LineTime> LineClock::latest() const {
  return latest_;
}

std::optional<LineTime> LineClock::now(MonotonicTime now) const {
  const Duration lead = std::max(lead_running_, lead_previous_);
  if (lead == Duration::min()) return std::nullopt;
  return std::max(*latest_, LineTime(now.since_epoch() + lead - kDeliveryMax));
}

}  // namespace rooflined::tap
