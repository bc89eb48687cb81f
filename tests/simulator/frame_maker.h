// Turns what a step bore for one response into the writes of its stream.
//
//   in:   an Emission, and the response that it belongs to
//   out:  writes, one segment each: none while tokens are kept back
//
// Thread rule: one thread.

#pragma once

#include "tests/simulator/dialect.h"
#include "tests/simulator/engine.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace rooflined::simulator {

struct FrameOptions {
  std::uint64_t stream_interval = 1;  // tokens of one frame after the first; the rest at the end
  // Probability that a write waits for the next one of its stream and leaves in one segment with it.
  double merge = 0;
  bool tell_drafts = true;  // where the dialect has fields for them
};

// What is kept of one stream between steps.
struct StreamState {
  std::uint64_t sent = 0;  // tokens
  std::string held;
};

class FrameMaker {
 public:
  // Requires: `dialect` outlives this; stream_interval ≥ 1, merge in [0, 1].
  FrameMaker(const Dialect& dialect, const FrameOptions& options, std::uint64_t seed);

  // Brings `response` up to date. The last write of a finished one is its end; one that is not streamed has none.
  std::vector<std::string> take(const Emission& emission, Response& response, StreamState& state);

 private:
  std::vector<std::string> frames(std::uint64_t generated, Response& response, StreamState& state) const;

  const Dialect& dialect_;
  FrameOptions options_;
  std::mt19937_64 random_;
};

}  // namespace rooflined::simulator
