// Does an engine that says nothing of it speculate? Tells several tokens from one pass from frames that were merged on
// the way: over a stream's intervals the slope of log Δ on log k is near 0 under speculation (a pass takes as long
// whatever it yields) and near 1 for merged frames (ledger.md "Speculation").
//
// The slope is that of the changes from one interval of a stream to its next, pooled over the streams of an engine:
// pace differs between streams and drifts within one, and where Nagle's timer decides how many frames wait for each
// other, a drift of pace alone makes k fall while Δ stays.
//
// Where no frame tells its tokens, a stream's total at its end is all there is: r = (n − 1) / (frames − 1) tokens a
// frame. Three things make r more than one, and each stream says which it looks like:
//   the engine sends each s-th token (--stream-interval)   the frames are just as many as a whole s gives
//   it merges what a slow client left waiting              intervals are as long as their tokens are many: uneven
//   it speculates                                          neither
// An engine speculates once four streams look like it, and not more of them like an interval. Constant memory, old
// evidence fades. Not thread-safe.

#pragma once

#include <cstdint>

namespace rooflined {

class SpeculationEvidence {
 public:
  enum class Verdict : std::uint8_t { kUndecided, kSpeculates, kMerges };

  struct Stream {
    // Its last interval.
    bool known = false;
    double log_tokens = 0;
    double log_seconds = 0;
    // How even its intervals are.
    double previous = 0;     // seconds
    double seconds = 0;      // Σ Δ
    double reciprocals = 0;  // Σ 1/Δ
    std::uint32_t intervals = 0;
    std::uint32_t jumps = 0;  // from one to the next by more than a quarter
  };

  // An interval of `tokens` ≥ 1 that took `seconds`; one without a length tells nothing.
  void add(Stream& stream, double tokens, double seconds);
  // An interval whose tokens are not known (besides add(), where they are).
  void add_length(Stream& stream, double seconds) {
    if (!(seconds > 0)) return;
    if (stream.intervals > 0 && (seconds > kJump * stream.previous || stream.previous > kJump * seconds)) {
      ++stream.jumps;
    }
    stream.previous = seconds;
    stream.seconds += seconds;
    stream.reciprocals += 1 / seconds;
    ++stream.intervals;
  }
  // A stream whose frames did not tell ended after `frames` frames with `tokens` tokens.
  void add_total(const Stream& stream, double tokens, double frames);
  Verdict verdict() const;

 private:
  static constexpr double kJump = 1.25;

  Verdict verdict_of_intervals() const;

  // Sums over all streams of products of changes.
  double tokens_tokens_ = 0;
  double tokens_seconds_ = 0;
  double seconds_seconds_ = 0;
  double changes_ = 0;
  double intervals_of_several_ = 0;  // with k > 1
  // Streams without counts, by what they look like.
  double speculating_ = 0;
  double each_few_ = 0;
  double uneven_ = 0;
};

}  // namespace rooflined
