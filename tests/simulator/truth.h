// What an engine has really done: sums since the start.
//
// Decode only, as in the daemon's books: a step without a sequence in decode adds no busy time. Plain data.

#pragma once

#include <cstdint>

namespace rooflined::simulator {

struct Truth {
  std::uint64_t decode_passes = 0;
  std::uint64_t prefill_steps = 0;
  double dense_bytes = 0;
  double expert_bytes = 0;
  double kv_bytes = 0;
  double busy_seconds = 0;           // steps with at least one sequence in decode
  double busy_prefill_seconds = 0;   // the part of busy_seconds spent on prefill
  double busy_overhead_seconds = 0;  // the part of busy_seconds spent on overhead
  double busy_capacity_bytes = 0;    // Σ busy seconds × the bandwidth of the time: what MBU is a share of
  double sequence_seconds = 0;
  std::uint64_t prompt_tokens = 0;     // of the requests that were admitted, cached ones included
  std::uint64_t prefilled_tokens = 0;  // computed: without cached ones, and those of a preempted sequence once more
  std::uint64_t output_tokens = 0;
  std::uint64_t decode_tokens = 0;
  double context_tokens = 0;  // Σ context over decode tokens
  std::uint64_t preemptions = 0;
  std::uint64_t sequences_finished = 0;
  std::uint64_t sequences_cancelled = 0;

  double bytes() const { return dense_bytes + expert_bytes + kv_bytes; }

  // Replicas together, or one phase of a run after the other.
  Truth& operator+=(const Truth& other) { return add(other, 1); }
  Truth operator-(const Truth& earlier) const { return Truth(*this).add(earlier, -1); }

 private:
  Truth& add(const Truth& other, int sign) {
    const auto count = [sign](std::uint64_t& sum, std::uint64_t more) { sum = sign > 0 ? sum + more : sum - more; };
    const auto amount = [sign](double& sum, double more) { sum += sign * more; };
    count(decode_passes, other.decode_passes);
    count(prefill_steps, other.prefill_steps);
    amount(dense_bytes, other.dense_bytes);
    amount(expert_bytes, other.expert_bytes);
    amount(kv_bytes, other.kv_bytes);
    amount(busy_seconds, other.busy_seconds);
    amount(busy_prefill_seconds, other.busy_prefill_seconds);
    amount(busy_overhead_seconds, other.busy_overhead_seconds);
    amount(busy_capacity_bytes, other.busy_capacity_bytes);
    amount(sequence_seconds, other.sequence_seconds);
    count(prompt_tokens, other.prompt_tokens);
    count(prefilled_tokens, other.prefilled_tokens);
    count(output_tokens, other.output_tokens);
    count(decode_tokens, other.decode_tokens);
    amount(context_tokens, other.context_tokens);
    count(preemptions, other.preemptions);
    count(sequences_finished, other.sequences_finished);
    count(sequences_cancelled, other.sequences_cancelled);
    return *this;
  }
};

}  // namespace rooflined::simulator
