#include "metrics/speculation_evidence.h"

#include <algorithm>
#include <cmath>

namespace rooflined {
namespace {

// Before so many intervals with several tokens, and so many in all, an accident of load can look like either.
constexpr double kOfSeveralMin = 8;
constexpr double kChangesMin = 16;
// Σ of squared changes of log k: five from 1 to 3 or back.
constexpr double kSpreadMin = 6;
// The slope has to be on its side of one half by so many standard errors.
constexpr double kErrors = 3;
constexpr double kResidualMin = 0.01;  // of log Δ, squared: timing on a wire is not better than that
// Evidence fades: what was seen before this many changes counts half.
constexpr double kMemory = 4096;

// Of streams without counts. Tokens without a frame (half a character, a stop token) make r a little more than one;
// more than sixteen drafts are not seen in the field, but whole thoughts that are counted and not sent are.
constexpr double kTokensPerFrameMin = 1.12;
constexpr double kTokensPerFrameMax = 17;
constexpr double kIntervalsMin = 16;
// Even: the arithmetic mean of Δ over its harmonic one is 1 + CV², 1.01 on a busy machine; merged frames of one or two
// tokens with r = 1.12 have 1.05. And a quarter of its intervals at most are far from the one before.
constexpr double kUnevenPerToken = 0.25;
constexpr double kJumpsMax = 0.25;
constexpr double kStreamsMin = 4;
constexpr double kStreamsMemory = 256;

bool even(const SpeculationEvidence::Stream& stream, double tokens_per_frame) {
  const double intervals = stream.intervals;
  const double spread = stream.seconds * stream.reciprocals / (intervals * intervals);
  return spread <= 1 + kUnevenPerToken * (tokens_per_frame - 1) && stream.jumps <= kJumpsMax * intervals;
}

// As many frames as there are when each `step`-th token is sent: the first alone or not, and an unseen stop token.
bool fits_interval(double step, double tokens, double frames) {
  return step >= 2 && std::abs(frames - 1 - std::ceil((tokens - 1) / step)) <= 1;
}

}  // namespace

void SpeculationEvidence::add(Stream& stream, double tokens, double seconds) {
  if (!(seconds > 0) || tokens < 1) return;
  // The usual engine: a token an interval, and no reason for two logarithms at each.
  if (tokens <= 1 && intervals_of_several_ == 0) return;
  const double log_tokens = tokens > 1 ? std::log(tokens) : 0;
  const double log_seconds = std::log(seconds);
  if (tokens > 1) intervals_of_several_ += 1;
  const double x = log_tokens - stream.log_tokens;
  const double y = log_seconds - stream.log_seconds;
  const bool first = !stream.known;
  stream = Stream{true, log_tokens, log_seconds};
  if (first) return;
  tokens_tokens_ += x * x;
  tokens_seconds_ += x * y;
  seconds_seconds_ += y * y;
  changes_ += 1;
  if (changes_ < kMemory) return;
  for (double* sum : {&tokens_tokens_, &tokens_seconds_, &seconds_seconds_, &changes_, &intervals_of_several_}) {
    *sum /= 2;
  }
}

void SpeculationEvidence::add_total(const Stream& stream, double tokens, double frames) {
  if (frames <= kIntervalsMin || stream.intervals < kIntervalsMin) return;
  const double ratio = (tokens - 1) / (frames - 1);
  if (ratio < kTokensPerFrameMin || ratio > kTokensPerFrameMax) return;
  if (fits_interval(std::floor(ratio), tokens, frames) || fits_interval(std::ceil(ratio), tokens, frames)) {
    each_few_ += 1;
  } else {
    (even(stream, ratio) ? speculating_ : uneven_) += 1;
  }
  if (speculating_ + each_few_ + uneven_ < kStreamsMemory) return;
  for (double* streams : {&speculating_, &each_few_, &uneven_}) *streams /= 2;
}

SpeculationEvidence::Verdict SpeculationEvidence::verdict() const {
  // Frames can be merged on the way besides.
  if (speculating_ >= kStreamsMin && speculating_ >= each_few_ && 4 * speculating_ >= uneven_) {
    return Verdict::kSpeculates;
  }
  return verdict_of_intervals();
}

SpeculationEvidence::Verdict SpeculationEvidence::verdict_of_intervals() const {
  if (intervals_of_several_ < kOfSeveralMin || changes_ < kChangesMin || tokens_tokens_ < kSpreadMin) {
    return Verdict::kUndecided;
  }
  const double slope = tokens_seconds_ / tokens_tokens_;
  const double residual = std::max(kResidualMin, (seconds_seconds_ - slope * tokens_seconds_) / (changes_ - 1));
  const double doubt = kErrors * std::sqrt(residual / tokens_tokens_);
  if (slope + doubt < 0.5) return Verdict::kSpeculates;
  if (slope - doubt > 0.5) return Verdict::kMerges;
  return Verdict::kUndecided;
}

}  // namespace rooflined
