// Which experts the tokens of one pass read, layer by layer.
//
// Each token takes k of a layer's E experts; what a pass reads is how many distinct ones its tokens took together.
// Thread rule: one thread.

#pragma once

#include "metrics/geometry.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace rooflined::simulator {

enum class Routing : std::uint8_t {
  kExpected,  // the expected number of distinct experts: the very formula of the daemon
  kRandom,    // experts drawn uniformly for each token and layer
  kSkewed,    // drawn with a probability that falls with the expert's rank, as 1/rank^skew (Zipf)
};

class ExpertRouter {
 public:
  // Requires: every group's k is at most its E; where they are drawn, k is a whole number.
  ExpertRouter(const Geometry& geometry, Routing routing, double skew);

  // Bytes of the experts that `tokens` tokens read in one pass.
  double bytes(std::size_t tokens, std::mt19937_64& random);

 private:
  struct Group {
    ExpertGroup shape;
    std::vector<double> share_below;  // cumulative over the ranks; empty where all are alike
  };

  std::size_t draw_distinct(const Group& group, std::size_t tokens, std::mt19937_64& random);
  std::size_t draw_uniform(std::size_t last, std::mt19937_64& random);
  std::size_t draw_skewed(const Group& group, std::mt19937_64& random);
  bool take(std::size_t expert);

  Geometry geometry_;
  Routing routing_;
  std::vector<Group> groups_;
  std::vector<std::uint64_t> read_;   // number of the pass and layer that read this expert last
  std::vector<std::uint64_t> drawn_;  // number of the draw in which a token took it last
  std::uint64_t layer_ = 0;
  std::uint64_t draw_ = 0;
};

}  // namespace rooflined::simulator
