// Slices of a simulated engine before and after a deploy, for holding the test of a deploy against known truth.
//
// A pass takes (W + B·c·KV) / (bandwidth × efficiency) + overhead, times noise that wanders (an AR(1) process over
// slices); batch and context wander with the traffic. Everything follows from the seed.

#pragma once

#include "metrics/deploy_change.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace rooflined::test {

struct DeployWork {
  double batch = 8;
  double context = 600;
  double batch_spread = 0.25;  // of the logarithm, over the slices
  double context_spread = 0.15;
};

struct DeployCase {
  std::string name;
  DeployWork before;
  DeployWork after;
  double efficiency_after = 0.6;
  // The passes of the first slices after the first token take this much longer, less and less: a cold page cache.
  double cold_factor = 1;
  double cold_slices = 0;
  bool changed() const { return efficiency_after != 0.6; }
};

class DeployTraffic {
 public:
  DeployTraffic(std::uint64_t seed, double variation, double correlation)
      : random_(seed), variation_(variation), correlation_(correlation), noise_(normal() * variation) {}

  DeploySlice slice(const DeployWork& work, double efficiency, double slowed) {
    constexpr double kWeights = 1e9;
    constexpr double kCache = 1e5;
    constexpr double kBandwidth = 40e9;
    constexpr double kOverhead = 1e-3;
    constexpr double kTrafficCorrelation = 0.9;  // load changes over minutes
    noise_ = correlation_ * noise_ + std::sqrt(1 - correlation_ * correlation_) * variation_ * normal();
    const double fresh = std::sqrt(1 - kTrafficCorrelation * kTrafficCorrelation);
    batch_ = kTrafficCorrelation * batch_ + fresh * normal();
    context_ = kTrafficCorrelation * context_ + fresh * normal();
    const double batch = std::max(1.0, work.batch * std::exp(work.batch_spread * batch_));
    const double context = work.context * std::exp(work.context_spread * context_);
    const double bytes = kWeights + batch * context * kCache;
    const double seconds = (bytes / (kBandwidth * efficiency) + kOverhead) * slowed * std::exp(noise_);
    DeploySlice slice;
    slice.index = index_++;
    slice.log_batch = static_cast<float>(std::log(batch));
    slice.log_context = static_cast<float>(std::log(context));
    slice.log_itl = static_cast<float>(std::log(seconds));
    slice.log_rate = static_cast<float>(std::log(bytes / seconds));
    slice.bytes_known = true;
    return slice;
  }
  void pause(std::int64_t slices) { index_ += slices; }

 private:
  double normal() { return std::normal_distribution<double>()(random_); }

  std::mt19937_64 random_;
  double variation_;
  double correlation_;
  double noise_;
  double batch_ = 0;
  double context_ = 0;
  std::int64_t index_ = 1000;
};

// Truth of the rate's ratio at the work of `before`: the overhead of a pass does not get slower with the memory.
inline double true_ratio(const DeployCase& one) {
  const double bytes = 1e9 + one.before.batch * one.before.context * 1e5;
  const auto seconds = [bytes](double efficiency) { return bytes / (40e9 * efficiency) + 1e-3; };
  return seconds(0.6) / seconds(one.efficiency_after);
}

struct DeployOutcome {
  bool alerted = false;
  double minutes = 0;  // of traffic after the deploy, until the alert
  std::optional<DeployChange> last;
};

// What the alert rule would see: the upper bound of the rate under 0.95 for two minutes (deploy-change.md).
inline DeployOutcome play_deploy(const DeployCase& one, std::uint64_t seed, double variation, double correlation,
                                 int slices_before, int slices_after) {
  constexpr int kSettling = 3;  // 30 s after the first token
  constexpr int kHold = 12;
  DeployTraffic traffic(seed, variation, correlation);
  std::vector<DeploySlice> before;
  for (int i = 0; i < slices_before; ++i) before.push_back(traffic.slice(one.before, 0.6, 1));
  traffic.pause(6);
  std::vector<DeploySlice> after;
  DeployOutcome outcome;
  int held = -1;  // since how many slices the bound has been under the threshold
  for (int i = 0; i < slices_after; ++i) {
    const double cold = one.cold_slices > 0 ? 1 + (one.cold_factor - 1) * std::exp(-i / one.cold_slices) : 1;
    const DeploySlice slice = traffic.slice(one.after, one.efficiency_after, cold);
    if (i < kSettling) continue;
    after.push_back(slice);
    outcome.last = deploy_change(before, after, ChangeOf::kRate);
    held = outcome.last && outcome.last->high < 0.95 ? held + 1 : -1;
    if (held >= kHold && !outcome.alerted) {
      outcome.alerted = true;
      outcome.minutes = (i + 1) / 6.0;
    }
  }
  return outcome;
}

inline std::vector<DeployCase> unchanged_cases() {
  const DeployWork usual;
  DeployWork alone = usual;
  alone.batch = 1;
  DeployWork long_prompts = usual;
  long_prompts.context = 10 * usual.context;
  DeployWork short_answers = usual;  // half of the slots are in prefill, contexts end earlier
  short_answers.batch = 5;
  short_answers.context = usual.context - 75;
  DeployWork narrow = usual;
  narrow.batch_spread = 0.01;
  DeployWork beside = narrow;
  beside.batch = 5;
  return {{"no change", usual, usual},
          {"batch 8 to 1", usual, alone},
          {"prompts ten times as long", usual, long_prompts},
          {"outputs 200 to 50", usual, short_answers},
          {"a batch that hardly varied", narrow, beside},
          {"cold cache", usual, usual, 0.6, 3, 3}};
}

inline DeployCase slower_case() {
  return {"efficiency 0.60 to 0.48", DeployWork(), DeployWork(), 0.48, 1, 0};
}

}  // namespace rooflined::test
