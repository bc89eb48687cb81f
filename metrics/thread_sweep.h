// What a sweep over thread counts says: where decode is fastest, where more threads stop to help, what too many cost.
// Decode and prefill are judged apart: one waits for memory, the other for arithmetic. Pure; threads: any.

#pragma once

#include <optional>
#include <span>
#include <vector>

namespace rooflined {

struct SweepPoint {
  unsigned threads = 0;
  std::optional<double> decode;   // tokens/s
  std::optional<double> prefill;  // tokens/s
};

struct SweepResult {
  std::optional<SweepPoint> best_decode;   // the operating point
  std::optional<SweepPoint> best_prefill;  // may be another thread count
  // The smallest count within 2 % of the best decode; absent where one count only was measured.
  std::optional<unsigned> knee;
  // What the highest count loses against the best; absent where it is the best.
  std::optional<double> loss_at_most_threads;
  // Best prefill over that at the fewest threads; absent where one count only was measured.
  std::optional<double> prefill_scaling;
};

inline constexpr double kKneeShare = 0.98;

SweepResult judge_sweep(std::span<const SweepPoint> points);

// The knee that most models have, the lower one of equally frequent ones; nothing of nothing.
std::optional<unsigned> common_knee(const std::vector<unsigned>& knees);

}  // namespace rooflined
