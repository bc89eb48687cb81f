#include "collectors/tap/client_window.h"

#include <algorithm>

namespace rooflined::tap {

namespace {

// RFC 7323 §2.3: larger exponents count as this one.
constexpr std::uint8_t kScaleMax = 14;

bool is_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace

void ClientWindow::acknowledge(std::uint32_t acknowledgment, std::uint16_t window) {
  if (acknowledged_ && is_before(acknowledgment, acknowledgment_)) return;
  acknowledged_ = true;
  acknowledgment_ = acknowledgment;
  window_ = window;
  judge();
}

void ClientWindow::send(std::uint32_t sequence_end, std::uint32_t length) {
  // A repeated segment, and the probe of a closed window, send nothing new.
  if (sent_ && !is_before(sent_end_, sequence_end)) return;
  sent_ = true;
  sent_end_ = sequence_end;
  length_last_ = std::max<std::uint32_t>(length, 1);
  judge();
}

void ClientWindow::judge() {
  closed_ = false;
  if (!acknowledged_ || (window_ != 0 && !scale_)) return;
  const std::int64_t window = window_ == 0 ? 0 : std::int64_t{window_} << std::min(*scale_, kScaleMax);
  const auto under_way = static_cast<std::int32_t>(sent_end_ - acknowledgment_);
  const std::int64_t room = sent_ && under_way > 0 ? window - under_way : window;
  // Below 0: nobody sends beyond a window, so there were acknowledgments that the capture does not show.
  closed_ = room >= 0 && room < length_last_;
}

}  // namespace rooflined::tap
