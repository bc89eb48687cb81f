#include "tests/simulator/expert_router.h"

#include <algorithm>
#include <cmath>

namespace rooflined::simulator {
namespace {

std::vector<double> zipf_shares(std::size_t experts, double skew) {
  std::vector<double> below;
  double sum = 0;
  for (std::size_t rank = 1; rank <= experts; ++rank) {
    below.push_back(sum += std::pow(static_cast<double>(rank), -skew));
  }
  for (double& share : below) share /= sum;
  return below;
}

}  // namespace

ExpertRouter::ExpertRouter(const Geometry& geometry, Routing routing, double skew)
    : geometry_(geometry), routing_(routing) {
  std::size_t experts_max = 0;
  for (const ExpertGroup& shape : geometry.expert_groups) {
    const auto experts = static_cast<std::size_t>(shape.experts);
    experts_max = std::max(experts_max, experts);
    groups_.push_back({shape, routing == Routing::kSkewed ? zipf_shares(experts, skew) : std::vector<double>()});
  }
  read_.assign(experts_max, 0);
  drawn_.assign(experts_max, 0);
}

double ExpertRouter::bytes(std::size_t tokens, std::mt19937_64& random) {
  if (routing_ == Routing::kExpected) return geometry_.weight_bytes(static_cast<double>(tokens)).experts;
  double sum = 0;
  for (const Group& group : groups_) {
    for (std::uint64_t layer = 0; layer < group.shape.layers; ++layer) {
      sum += static_cast<double>(draw_distinct(group, tokens, random)) * group.shape.bytes_per_expert;
    }
  }
  return sum;
}

std::size_t ExpertRouter::draw_distinct(const Group& group, std::size_t tokens, std::mt19937_64& random) {
  const auto experts = static_cast<std::size_t>(group.shape.experts);
  const auto taken = static_cast<std::size_t>(group.shape.experts_per_token);
  ++layer_;
  std::size_t distinct = 0;
  for (std::size_t token = 0; token < tokens; ++token) {
    ++draw_;
    for (std::size_t last = experts - taken; last < experts; ++last) {
      const std::size_t expert = group.share_below.empty() ? draw_uniform(last, random) : draw_skewed(group, random);
      distinct += take(expert) ? 1U : 0U;
    }
  }
  return distinct;
}

// Floyd's sampling: k draws without repetition, whatever k is.
std::size_t ExpertRouter::draw_uniform(std::size_t last, std::mt19937_64& random) {
  const std::size_t expert = std::uniform_int_distribution<std::size_t>(0, last)(random);
  return drawn_[expert] == draw_ ? last : expert;
}

// The token's next expert among those that it has not taken yet: each by its share of what is left.
std::size_t ExpertRouter::draw_skewed(const Group& group, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  while (true) {
    const auto found = std::ranges::upper_bound(group.share_below, uniform(random));
    const auto rank = static_cast<std::size_t>(found - group.share_below.begin());
    const std::size_t expert = std::min(rank, group.share_below.size() - 1);
    if (drawn_[expert] != draw_) return expert;
  }
}

// Notes it as taken by this token; true where no token of this pass had taken it before.
bool ExpertRouter::take(std::size_t expert) {
  drawn_[expert] = draw_;
  const bool is_new = read_[expert] != layer_;
  read_[expert] = layer_;
  return is_new;
}

}  // namespace rooflined::simulator
