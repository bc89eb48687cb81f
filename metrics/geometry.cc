#include "metrics/geometry.h"

#include <algorithm>
#include <cmath>

namespace rooflined {
namespace {

// Tokens read at a context of `c` tokens.
double reach(double c, const KvGroup& group) {
  const double chunk = static_cast<double>(group.chunk);
  if (chunk > 0 && c >= 1) c -= chunk * std::floor((c - 1) / chunk);
  return group.window == 0 ? c : std::min(c, static_cast<double>(group.window));
}

double arithmetic_sum(double first, double terms) {
  return terms * first + terms * (terms - 1) / 2;
}

// Σ min(c, window) over `count` consecutive contexts from `first` on.
double windowed_sum(double first, double count, std::uint64_t window) {
  if (window == 0) return arithmetic_sum(first, count);
  const double cap = static_cast<double>(window);
  const double below = std::clamp(std::ceil(cap - first), 0.0, count);
  return arithmetic_sum(first, below) + (count - below) * cap;
}

// Σ floor(j / chunk) over 0 ≤ j < `end`.
double whole_chunks_before(double end, double chunk) {
  const double whole = std::floor(end / chunk);
  return chunk * whole * (whole - 1) / 2 + whole * (end - whole * chunk);
}

// Σ ((c−1) mod chunk)+1, which is c − chunk·floor((c−1)/chunk).
double chunked_sum(double first, double count, std::uint64_t size) {
  const double chunk = static_cast<double>(size);
  const double before = std::max(std::floor(first - 1), 0.0);
  const double end = std::max(std::floor(first - 1) + count, before);
  return arithmetic_sum(first, count) - chunk * (whole_chunks_before(end, chunk) - whole_chunks_before(before, chunk));
}

double reach_sum(double first, double count, const KvGroup& group) {
  return group.chunk > 0 ? chunked_sum(first, count, group.chunk) : windowed_sum(first, count, group.window);
}

}  // namespace

WeightBytes Geometry::weight_bytes(double batch) const {
  WeightBytes bytes{dense_bytes, 0};
  for (const ExpertGroup& group : expert_groups) {
    const double all = static_cast<double>(group.experts);
    const double share = group.experts_per_token / all;
    const double distinct = all * (1 - std::pow(1 - share, batch));
    bytes.experts += static_cast<double>(group.layers) * distinct * group.bytes_per_expert;
  }
  return bytes;
}

double Geometry::kv_bytes(double context) const {
  double bytes = state_bytes_per_sequence;
  for (const KvGroup& group : kv_groups) {
    const double one = group.bytes_per_token * reach(context, group) + group.index_bytes_per_token * context;
    bytes += static_cast<double>(group.layers) * one;
  }
  return bytes;
}

double Geometry::kv_bytes_sum(double context_first, double count) const {
  if (count <= 0) return 0;
  double bytes = state_bytes_per_sequence * count;
  const double all = arithmetic_sum(context_first, count);
  for (const KvGroup& group : kv_groups) {
    const double one = group.bytes_per_token * reach_sum(context_first, count, group);
    bytes += static_cast<double>(group.layers) * (one + group.index_bytes_per_token * all);
  }
  return bytes;
}

double Geometry::kv_bytes_per_token() const {
  double bytes = 0;
  for (const KvGroup& group : kv_groups) bytes += static_cast<double>(group.layers) * group.bytes_per_token;
  return bytes;
}

}  // namespace rooflined
