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

SpeculationEvidence::Verdict SpeculationEvidence::verdict() const {
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
