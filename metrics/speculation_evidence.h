// Does an engine that says nothing of it speculate? Tells several tokens from one pass from frames that were merged on
// the way: over a stream's intervals the slope of log Δ on log k is near 0 under speculation (a pass takes as long
// whatever it yields) and near 1 for merged frames (ledger.md "Speculation").
//
// The slope is that of the changes from one interval of a stream to its next, pooled over the streams of an engine:
// pace differs between streams and drifts within one, and where Nagle's timer decides how many frames wait for each
// other, a drift of pace alone makes k fall while Δ stays. Constant memory, old evidence fades. Not thread-safe.

#pragma once

#include <cstdint>

namespace rooflined {

class SpeculationEvidence {
 public:
  enum class Verdict : std::uint8_t { kUndecided, kSpeculates, kMerges };

  // The last interval of one stream.
  struct Stream {
    bool known = false;
    double log_tokens = 0;
    double log_seconds = 0;
  };

  // An interval of `tokens` ≥ 1 that took `seconds`; one without a length tells nothing.
  void add(Stream& stream, double tokens, double seconds);
  Verdict verdict() const;

 private:
  // Sums over all streams of products of changes.
  double tokens_tokens_ = 0;
  double tokens_seconds_ = 0;
  double seconds_seconds_ = 0;
  double changes_ = 0;
  double intervals_of_several_ = 0;  // with k > 1
};

}  // namespace rooflined
