#include "metrics/burst_splitter.h"

#include <algorithm>
#include <numeric>

namespace rooflined {
namespace {

constexpr float kShare = 0.9F;
// Step of the online quantile: it follows a change of pace within some thirty gaps, and strays by less than the factor
// of two that the threshold leaves.
constexpr float kStep = 0.1F;
// Gaps inside bursts were measured at 0.02 to 7 ms where passes took 500 to 700 ms: eight times their mean is beyond
// their spread, and a tenth of a pass is beyond them.
constexpr float kInsideMax = 0.1F;
constexpr float kBeyondInside = 8;

}  // namespace

void BurstSplitter::learn(Duration gap) {
  const auto value = static_cast<float>(gap.count());
  if (gaps_ < kHead) {
    learn_head(value);
  } else {
    quantile_ *= value > quantile_ ? 1 + kStep * kShare : 1 - kStep * (1 - kShare);
    if (value <= threshold_) inside_ += kStep * (value - inside_);
  }
  threshold_ = std::min(quantile_ / 2, std::max(quantile_ * kInsideMax, inside_ * kBeyondInside));
}

void BurstSplitter::learn_head(float gap) {
  const auto end = head_.begin() + gaps_;
  const auto place = std::upper_bound(head_.begin(), end, gap);
  std::copy_backward(place, end, end + 1);
  *place = gap;
  ++gaps_;
  const std::uint32_t rank = (9 * gaps_ + 9) / 10;  // ⌈0.9 n⌉
  quantile_ = head_[rank - 1];
  const auto inside_end = std::upper_bound(head_.begin(), head_.begin() + gaps_, quantile_ * kInsideMax);
  const auto inside = static_cast<float>(inside_end - head_.begin());
  inside_ = inside > 0 ? std::accumulate(head_.begin(), inside_end, 0.0F) / inside : 0;
}

}  // namespace rooflined
