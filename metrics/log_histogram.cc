#include "metrics/log_histogram.h"

#include <algorithm>
#include <cmath>

namespace rooflined {
namespace {

constexpr double kSmallest = 1e-6;
constexpr std::int32_t kIndexMax = 1047;  // 1 µs × 1.02^1047 ≈ 1,000 s
const double kLogRatio = std::log(1.02);

std::int32_t index_of(double seconds) {
  if (!(seconds > kSmallest)) return 0;
  return std::min(kIndexMax, static_cast<std::int32_t>(std::log(seconds / kSmallest) / kLogRatio) + 1);
}

// The geometric middle of a bucket.
double value_of(std::int32_t index) {
  return kSmallest * std::exp(kLogRatio * (index - 0.5));
}

}  // namespace

void LogHistogram::add(double seconds, double weight) {
  add_to_bucket(index_of(seconds), weight);
  weight_ += weight;
  sum_ += seconds * weight;
}

void LogHistogram::add(const LogHistogram& other) {
  for (const Bucket& bucket : other.buckets_) add_to_bucket(bucket.index, bucket.weight);
  weight_ += other.weight_;
  sum_ += other.sum_;
}

void LogHistogram::add_to_bucket(std::int32_t index, double weight) {
  const auto place = std::lower_bound(buckets_.begin(), buckets_.end(), index,
                                      [](const Bucket& bucket, std::int32_t wanted) { return bucket.index < wanted; });
  if (place != buckets_.end() && place->index == index) {
    place->weight += weight;
  } else {
    buckets_.insert(place, Bucket{index, weight});
  }
}

double LogHistogram::quantile(double share) const {
  double below = 0;
  for (const Bucket& bucket : buckets_) {
    below += bucket.weight;
    if (below >= share * weight_) return value_of(bucket.index);
  }
  return value_of(buckets_.back().index);
}

}  // namespace rooflined
