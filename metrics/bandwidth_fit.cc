#include "metrics/bandwidth_fit.h"

#include <algorithm>

namespace rooflined {

std::optional<BandwidthFit> fit_bandwidth(std::span<const FitPoint> points) {
  if (points.size() < 2) return std::nullopt;
  double xy = 0;
  double xx = 0;
  double sum = 0;
  for (const FitPoint& point : points) {
    const double x = 1 / point.bytes;
    xy += x * point.tokens_per_second;
    xx += x * x;
    sum += point.tokens_per_second;
  }
  BandwidthFit fit;
  fit.bandwidth = xy / xx;
  fit.points = points.size();
  const double mean = sum / static_cast<double>(points.size());
  double residual = 0;
  double total = 0;
  for (const FitPoint& point : points) {
    const double apart = point.tokens_per_second - fit.bandwidth / point.bytes;
    const double from_mean = point.tokens_per_second - mean;
    residual += apart * apart;
    total += from_mean * from_mean;
  }
  if (total > 0) fit.r_squared = 1 - residual / total;
  return fit;
}

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace rooflined
