// Does an engine that says nothing of it speculate? Tells several tokens from one pass from frames that were merged on
// the way: over a stream's intervals the slope of log Δ on log k is near 0 under speculation (a pass takes as long
// whatever it yields) and near 1 for merged frames (ledger.md "Speculation").
//
// Deviations are from each stream's own means, pooled over the streams of an engine: streams differ in pace. Constant
// memory, old evidence fades. Not thread-safe.

#pragma once

#include <cstdint>

namespace rooflined {

class SpeculationEvidence {
 public:
  enum class Verdict : std::uint8_t { kUndecided, kSpeculates, kMerges };

  // The means of one stream.
  struct Stream {
    double intervals = 0;
    double log_tokens = 0;
    double log_seconds = 0;
  };

  // An interval of `tokens` ≥ 1 that took `seconds`; one without a length tells nothing.
  void add(Stream& stream, double tokens, double seconds);
  Verdict verdict() const;

 private:
  // Sums over all streams of products of deviations from the stream's mean.
  double tokens_tokens_ = 0;
  double tokens_seconds_ = 0;
  double seconds_seconds_ = 0;
  double intervals_ = 0;             // beyond each stream's first
  double intervals_of_several_ = 0;  // with k > 1
};

}  // namespace rooflined
