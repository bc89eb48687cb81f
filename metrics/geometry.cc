#include "metrics/geometry.h"

#include <algorithm>
#include <cmath>

namespace rooflined {
namespace {

// Σ min(c, window) over `count` consecutive contexts from `first` on.
double capped_sum(double first, double count, std::uint64_t window) {
  const auto arithmetic = [](double from, double terms) { return terms * from + terms * (terms - 1) / 2; };
  if (count <= 0) return 0;
  if (window == 0) return arithmetic(first, count);
  const double cap = static_cast<double>(window);
  const double below = std::clamp(std::ceil(cap - first), 0.0, count);
  return arithmetic(first, below) + (count - below) * cap;
}

}  // namespace

WeightBytes Geometry::weight_bytes(double batch) const {
  WeightBytes bytes{dense_bytes, 0};
  for (const ExpertGroup& group : expert_groups) {
    const double all = static_cast<double>(group.experts);
    const double share = static_cast<double>(group.experts_per_token) / all;
    const double distinct = all * (1 - std::pow(1 - share, batch));
    bytes.experts += static_cast<double>(group.layers) * distinct * group.bytes_per_expert;
  }
  return bytes;
}

double Geometry::kv_bytes(double context) const {
  double bytes = state_bytes_per_sequence;
  for (const KvGroup& group : kv_groups) {
    const double read = group.window == 0 ? context : std::min(context, static_cast<double>(group.window));
    bytes += static_cast<double>(group.layers) * group.bytes_per_token * read;
  }
  return bytes;
}

double Geometry::kv_bytes_sum(double context_first, double count) const {
  double bytes = state_bytes_per_sequence * std::max(count, 0.0);
  for (const KvGroup& group : kv_groups) {
    bytes += static_cast<double>(group.layers) * group.bytes_per_token * capped_sum(context_first, count, group.window);
  }
  return bytes;
}

double Geometry::kv_bytes_per_token() const {
  double bytes = 0;
  for (const KvGroup& group : kv_groups) bytes += static_cast<double>(group.layers) * group.bytes_per_token;
  return bytes;
}

}  // namespace rooflined
