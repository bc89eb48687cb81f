#include "metrics/speculation_evidence.h"

#include <algorithm>
#include <cmath>

namespace rooflined {
namespace {

// Before so many intervals with several tokens, and so many in all, an accident of load can look like either.
constexpr double kOfSeveralMin = 8;
constexpr double kIntervalsMin = 16;
// Σ of squared deviations of log k: ten intervals whose k are 1 and 3 by turns.
constexpr double kSpreadMin = 3;
// The slope has to be on its side of one half by so many standard errors.
constexpr double kErrors = 3;
constexpr double kResidualMin = 0.01;  // of log Δ, squared: timing on a wire is not better than that
// Evidence fades: what was seen before this many intervals counts half.
constexpr double kMemory = 4096;

}  // namespace

void SpeculationEvidence::add(Stream& stream, double tokens, double seconds) {
  if (!(seconds > 0) || tokens < 1) return;
  const double x = tokens > 1 ? std::log(tokens) : 0;
  const double y = std::log(seconds);
  const double share = stream.intervals / (stream.intervals + 1);
  const double dx = x - stream.log_tokens;
  const double dy = y - stream.log_seconds;
  stream.intervals += 1;
  stream.log_tokens += dx / stream.intervals;
  stream.log_seconds += dy / stream.intervals;
  if (tokens > 1) intervals_of_several_ += 1;
  if (share == 0) return;
  tokens_tokens_ += share * dx * dx;
  tokens_seconds_ += share * dx * dy;
  seconds_seconds_ += share * dy * dy;
  intervals_ += 1;
  if (intervals_ < kMemory) return;
  for (double* sum : {&tokens_tokens_, &tokens_seconds_, &seconds_seconds_, &intervals_, &intervals_of_several_}) {
    *sum /= 2;
  }
}

SpeculationEvidence::Verdict SpeculationEvidence::verdict() const {
  if (intervals_of_several_ < kOfSeveralMin || intervals_ < kIntervalsMin || tokens_tokens_ < kSpreadMin) {
    return Verdict::kUndecided;
  }
  const double slope = tokens_seconds_ / tokens_tokens_;
  const double residual = std::max(kResidualMin, (seconds_seconds_ - slope * tokens_seconds_) / (intervals_ - 1));
  const double doubt = kErrors * std::sqrt(residual / tokens_tokens_);
  if (slope + doubt < 0.5) return Verdict::kSpeculates;
  if (slope - doubt > 0.5) return Verdict::kMerges;
  return Verdict::kUndecided;
}

}  // namespace rooflined
