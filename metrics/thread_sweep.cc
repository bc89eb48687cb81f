#include "metrics/thread_sweep.h"

#include <algorithm>
#include <map>

namespace rooflined {
namespace {

using Rate = std::optional<double> SweepPoint::*;

// Of the points where `rate` was measured; the fewer threads where two are equally fast.
std::optional<SweepPoint> fastest(const std::vector<SweepPoint>& points, Rate rate) {
  std::optional<SweepPoint> best;
  for (const SweepPoint& point : points) {
    if (point.*rate && (!best || *(point.*rate) > (*best.*rate).value_or(0))) best = point;
  }
  return best;
}

std::vector<SweepPoint> measured(const std::vector<SweepPoint>& points, Rate rate) {
  std::vector<SweepPoint> found;
  std::copy_if(points.begin(), points.end(), std::back_inserter(found),
               [rate](const SweepPoint& point) { return (point.*rate).has_value(); });
  return found;
}

void judge_decode(const std::vector<SweepPoint>& points, SweepResult& result) {
  if (points.size() < 2 || !result.best_decode) return;
  const double best = result.best_decode->decode.value_or(0);
  for (const SweepPoint& point : points) {
    if (point.decode.value_or(0) < kKneeShare * best) continue;
    result.knee = point.threads;
    break;
  }
  const SweepPoint& most = points.back();
  if (most.threads != result.best_decode->threads) result.loss_at_most_threads = 1 - most.decode.value_or(0) / best;
}

}  // namespace

SweepResult judge_sweep(std::span<const SweepPoint> points) {
  std::vector<SweepPoint> ordered(points.begin(), points.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const SweepPoint& a, const SweepPoint& b) { return a.threads < b.threads; });
  SweepResult result;
  result.best_decode = fastest(ordered, &SweepPoint::decode);
  result.best_prefill = fastest(ordered, &SweepPoint::prefill);
  judge_decode(measured(ordered, &SweepPoint::decode), result);
  const std::vector<SweepPoint> prefill = measured(ordered, &SweepPoint::prefill);
  if (prefill.size() > 1 && result.best_prefill && prefill.front().prefill.value_or(0) > 0) {
    result.prefill_scaling = result.best_prefill->prefill.value_or(0) / prefill.front().prefill.value_or(1);
  }
  return result;
}

std::optional<unsigned> common_knee(const std::vector<unsigned>& knees) {
  std::map<unsigned, unsigned> votes;
  for (const unsigned knee : knees) ++votes[knee];
  std::optional<unsigned> common;
  for (const auto& [threads, count] : votes) {
    if (!common || count > votes[*common]) common = threads;
  }
  return common;
}

}  // namespace rooflined
