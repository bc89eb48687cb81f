#include "collectors/ceiling/history.h"

#include <algorithm>
#include <utility>

namespace rooflined::ceiling {
namespace {

// Ten idle runs of one machine lie within 5 % of each other; two that contention made lie anywhere.
constexpr double kAgreeing = 0.9;

bool agree(const ConfirmedResult& a, const ConfirmedResult& b) {
  const auto [less, more] = std::minmax(a.ceiling, b.ceiling);
  return less >= kAgreeing * more;
}

}  // namespace

ConfirmedResult confirmed_result(const Measurement& measurement, WallTime measured_at) {
  ROOFLINED_CHECK(measurement.adoptable() && measurement.winner);
  ConfirmedResult result;
  result.measured_at = measured_at;
  result.ceiling = measurement.winner->best;
  result.median = measurement.winner->median;
  result.kernel = measurement.winner->kernel;
  result.threads = measurement.winner->threads;
  result.working_set = measurement.working_set;
  result.cache_inflated = measurement.cache_inflated;
  for (const NodeResult& node : measurement.nodes) {
    if (node.stable) result.nodes.push_back(node);
  }
  return result;
}

History::Judgement History::take(ConfirmedResult result) {
  const ConfirmedResult* const held = adopted();
  const bool high = held != nullptr && result.ceiling > kSuspectAbove * held->ceiling;
  const bool low = held != nullptr && result.ceiling < kSuspectBelow * held->ceiling;
  if (high_ && ++taken_since_high_ > kResultsKept) high_.reset();
  const std::optional<ConfirmedResult> low_before = std::exchange(low_, std::nullopt);

  newest_is_suspect_ = (high && !high_) || (low && !(low_before && agree(*low_before, result)));
  if (newest_is_suspect_) {
    if (high) taken_since_high_ = 0;
    (high ? high_ : low_) = std::move(result);
    return Judgement::kSuspect;
  }
  if (high) restore(*std::exchange(high_, std::nullopt));
  restore(std::move(result));
  return Judgement::kAdopted;
}

void History::restore(ConfirmedResult result) {
  results_.push_back(std::move(result));
  if (results_.size() > kResultsKept) {
    results_.erase(results_.begin(), results_.end() - static_cast<std::ptrdiff_t>(kResultsKept));
  }
}

void History::restore_suspect(ConfirmedResult result) {
  const ConfirmedResult* const held = adopted();
  if (held == nullptr) return;
  (result.ceiling > held->ceiling ? high_ : low_) = std::move(result);
  newest_is_suspect_ = true;
}

std::vector<ConfirmedResult> History::suspects() const {
  std::vector<ConfirmedResult> all;
  for (const auto& waiting : {high_, low_}) {
    if (waiting) all.push_back(*waiting);
  }
  return all;
}

const ConfirmedResult* History::adopted() const {
  if (results_.empty()) return nullptr;
  std::vector<const ConfirmedResult*> order;
  for (const ConfirmedResult& result : results_) order.push_back(&result);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->ceiling > b->ceiling; });
  return order[std::min<std::size_t>(1, order.size() - 1)];
}

const std::vector<NodeResult>& History::nodes() const {
  static const std::vector<NodeResult> kNone;
  const auto newest = std::find_if(results_.rbegin(), results_.rend(),
                                   [](const ConfirmedResult& result) { return !result.nodes.empty(); });
  return newest == results_.rend() ? kNone : newest->nodes;
}

}  // namespace rooflined::ceiling
