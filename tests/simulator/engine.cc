#include "tests/simulator/engine.h"

#include "metrics/base/result.h"

#include <algorithm>
#include <utility>

namespace rooflined::simulator {

Engine::Engine(EngineOptions options) : options_(std::move(options)), random_(options_.seed) {
  ROOFLINED_CHECK(options_.bandwidth > 0 && options_.efficiency > 0 && options_.efficiency <= 1);
  ROOFLINED_CHECK(options_.batch_max >= 1);
  ROOFLINED_CHECK(options_.prefill_tokens_per_second >= 0 && options_.overhead_seconds >= 0);
  ROOFLINED_CHECK(options_.acceptance >= 0 && options_.acceptance <= 1);
}

bool Engine::submit(const SequenceRequest& request) {
  ROOFLINED_CHECK(request.output_tokens >= 1);
  if (waiting_.size() >= options_.sequences_waiting_max) return false;
  waiting_.push_back(Running{request});
  return true;
}

void Engine::preempt(SequenceId id) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [id](const Running& sequence) { return sequence.request.id == id; });
  if (found == running_.end()) return;
  waiting_.push_back(*found);
  waiting_.back().prefilling = true;
  running_.erase(found);
}

void Engine::cancel(SequenceId id) {
  const auto is_it = [id](const Running& sequence) { return sequence.request.id == id; };
  const auto removed = std::erase_if(waiting_, is_it) + std::erase_if(running_, is_it);
  truth_.sequences_cancelled += removed;
}

const Step& Engine::step() {
  ROOFLINED_CHECK(!idle());
  const std::size_t decoding = running_.size();
  const double decode = decode_seconds();
  const std::uint64_t prefill_tokens = admit();
  const double prefill = options_.prefill_tokens_per_second > 0
                             ? static_cast<double>(prefill_tokens) / options_.prefill_tokens_per_second
                             : 0;
  step_.seconds = decode + prefill + options_.overhead_seconds;
  step_.decoding = decoding;
  step_.prefilled = running_.size() - decoding;
  step_.emissions.clear();

  truth_.prompt_tokens += prefill_tokens;
  if (step_.prefilled > 0) ++truth_.prefill_steps;
  if (decoding > 0) {
    ++truth_.decode_passes;
    truth_.busy_seconds += step_.seconds;
    truth_.busy_prefill_seconds += prefill;
    truth_.busy_overhead_seconds += options_.overhead_seconds;
    truth_.sequence_seconds += step_.seconds * static_cast<double>(decoding);
  }
  for (Running& sequence : running_) bear(sequence, step_.seconds);
  const auto finished = std::erase_if(
      running_, [](const Running& sequence) { return sequence.generated >= sequence.request.output_tokens; });
  truth_.sequences_finished += finished;
  return step_;
}

void Engine::stall(double seconds) {
  if (step_.decoding == 0) return;
  truth_.busy_seconds += seconds;
  truth_.sequence_seconds += seconds * static_cast<double>(step_.decoding);
}

// The decode pass over the sequences that run now, booked into the truth.
double Engine::decode_seconds() {
  if (running_.empty()) return 0;
  double kv = 0;
  for (const Running& sequence : running_) {
    const double context = static_cast<double>(sequence.request.prompt_tokens + sequence.generated);
    kv += options_.geometry.kv_bytes(context);
    truth_.context_tokens += context;
  }
  const double experts = expert_bytes(running_.size() * (1 + options_.draft_tokens));
  truth_.dense_bytes += options_.geometry.dense_bytes;
  truth_.expert_bytes += experts;
  truth_.kv_bytes += kv;
  return (options_.geometry.dense_bytes + experts + kv) / (options_.bandwidth * options_.efficiency);
}

double Engine::expert_bytes(std::size_t batch) {
  if (options_.routing == Routing::kRandom) return drawn_expert_bytes(batch);
  return options_.geometry.weight_bytes(static_cast<double>(batch)).experts;
}

double Engine::drawn_expert_bytes(std::size_t batch) {
  double bytes = 0;
  for (const ExpertGroup& group : options_.geometry.expert_groups) {
    for (std::uint64_t layer = 0; layer < group.layers; ++layer) {
      bytes += static_cast<double>(draw_distinct(group, batch)) * group.bytes_per_expert;
    }
  }
  return bytes;
}

// How many experts of one layer are read when each token of the batch draws k of E without repetition (Floyd's
// sampling: k draws, whatever k is).
std::size_t Engine::draw_distinct(const ExpertGroup& group, std::size_t batch) {
  const auto experts = static_cast<std::size_t>(group.experts);
  expert_read_.assign(experts, 0);
  if (expert_drawn_.size() < experts) expert_drawn_.resize(experts, 0);
  std::size_t distinct = 0;
  for (std::size_t token = 0; token < batch; ++token) {
    ++draw_;
    for (std::size_t last = experts - static_cast<std::size_t>(group.experts_per_token); last < experts; ++last) {
      std::size_t expert = std::uniform_int_distribution<std::size_t>(0, last)(random_);
      if (expert_drawn_[expert] == draw_) expert = last;
      expert_drawn_[expert] = draw_;
      distinct += expert_read_[expert] == 0 ? 1U : 0U;
      expert_read_[expert] = 1;
    }
  }
  return distinct;
}

// Moves waiting sequences into free places; how many prompt tokens their prefill has.
std::uint64_t Engine::admit() {
  std::uint64_t prompt_tokens = 0;
  while (!waiting_.empty() && running_.size() < options_.batch_max) {
    prompt_tokens += waiting_.front().request.prompt_tokens + waiting_.front().generated;
    running_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  return prompt_tokens;
}

// How many tokens the sequence gets of a decode pass.
std::uint64_t Engine::tokens_of_pass(Running& sequence) {
  const std::uint64_t left = sequence.request.output_tokens - sequence.generated;
  std::uint64_t tokens = 1;
  std::bernoulli_distribution accepted(options_.acceptance);
  while (tokens <= options_.draft_tokens && accepted(random_)) ++tokens;
  tokens = std::min(tokens, left);
  sequence.drafted += options_.draft_tokens;
  sequence.accepted += tokens - 1;
  truth_.decode_tokens += tokens;
  return tokens;
}

void Engine::bear(Running& sequence, double seconds) {
  const bool decodes = !sequence.prefilling;
  sequence.prefilling = false;
  (decodes ? sequence.decode_seconds : sequence.prefill_seconds) += seconds;
  const std::uint64_t tokens = decodes ? tokens_of_pass(sequence) : 1;
  sequence.generated += tokens;
  truth_.output_tokens += tokens;
  step_.emissions.push_back({sequence.request.id, sequence.generated, tokens, sequence.drafted, sequence.accepted,
                             sequence.generated >= sequence.request.output_tokens, sequence.prefill_seconds,
                             sequence.decode_seconds});
}

}  // namespace rooflined::simulator
