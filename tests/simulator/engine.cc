#include "tests/simulator/engine.h"

#include "metrics/base/result.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace rooflined::simulator {
namespace {

EngineOptions checked(EngineOptions options) {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  ROOFLINED_CHECK(options.bandwidth > 0 && options.efficiency > 0 && options.efficiency <= 1);
  ROOFLINED_CHECK(options.batch_max >= 1);
  ROOFLINED_CHECK(options.prefill_tokens_per_second >= 0 && options.overhead_seconds >= 0);
  ROOFLINED_CHECK(is_share(options.acceptance) && is_share(options.preemption));
  return options;
}

}  // namespace

Engine::Engine(EngineOptions options)
    : options_(checked(std::move(options))),
      random_(options_.seed),
      router_(options_.geometry, options_.routing, options_.routing_skew),
      jitter_(options_.jitter) {}

void Engine::reconfigure(EngineOptions options) {
  options_ = checked(std::move(options));
  router_ = ExpertRouter(options_.geometry, options_.routing, options_.routing_skew);
  jitter_ = StepJitter(options_.jitter);
}

bool Engine::submit(const SequenceRequest& request) {
  ROOFLINED_CHECK(request.output_tokens >= 1 &&
                  request.cached_tokens < std::max<std::uint64_t>(request.prompt_tokens, 1));
  if (waiting_.size() >= options_.sequences_waiting_max) return false;
  waiting_.push_back(Running{request});
  return true;
}

void Engine::preempt(SequenceId id) {
  const auto found = std::ranges::find(running_, id, [](const Running& sequence) { return sequence.request.id; });
  if (found == running_.end()) return;
  if (!found->prefilling) --decoding_;
  waiting_.push_back(*found);
  waiting_.back().prefilling = true;
  waiting_.back().prefill_left = 0;
  running_.erase(found);
  ++truth_.preemptions;
}

void Engine::cancel(SequenceId id) {
  const auto is_it = [id](const Running& sequence) { return sequence.request.id == id; };
  const auto found = std::ranges::find_if(running_, is_it);
  if (found != running_.end() && !found->prefilling) --decoding_;
  const auto removed = std::erase_if(waiting_, is_it) + std::erase_if(running_, is_it);
  truth_.sequences_cancelled += removed;
}

const Step& Engine::step() {
  ROOFLINED_CHECK(!idle());
  preempt_at_random();
  const double decode = decode_seconds();
  const std::uint64_t prefill_tokens = admit();
  const double prefill = options_.prefill_tokens_per_second > 0
                             ? static_cast<double>(prefill_tokens) / options_.prefill_tokens_per_second
                             : 0;
  const double slow = slowness(decode + prefill + options_.overhead_seconds);
  step_.seconds = slow * (decode + prefill + options_.overhead_seconds);
  step_.decoding = decoding_;
  step_.emissions.clear();

  truth_.prefilled_tokens += prefill_tokens;
  if (step_.prefilled > 0) ++truth_.prefill_steps;
  if (decoding_ > 0) {
    ++truth_.decode_passes;
    truth_.busy_prefill_seconds += slow * prefill;
    truth_.busy_overhead_seconds += slow * options_.overhead_seconds;
    book_busy(step_.seconds);
  }
  for (Running& sequence : running_) bear(sequence, step_.seconds);
  const auto finished = std::erase_if(
      running_, [](const Running& sequence) { return sequence.generated >= sequence.request.output_tokens; });
  truth_.sequences_finished += finished;
  decoding_ = static_cast<std::size_t>(std::ranges::count(running_, false, &Running::prefilling));
  return step_;
}

void Engine::stall(double seconds) {
  if (step_.decoding > 0) book_busy(seconds);
}

void Engine::book_busy(double seconds) {
  truth_.busy_seconds += seconds;
  truth_.busy_capacity_bytes += seconds * options_.bandwidth;
  truth_.sequence_seconds += seconds * static_cast<double>(step_.decoding);
}

void Engine::preempt_at_random() {
  if (options_.preemption == 0 || decoding_ < 2) return;
  if (!std::bernoulli_distribution(options_.preemption)(random_)) return;
  preempt(running_[std::uniform_int_distribution<std::size_t>(0, decoding_ - 1)(random_)].request.id);
}

// The decode pass over the sequences that run now, booked into the truth.
double Engine::decode_seconds() {
  if (decoding_ == 0) return 0;
  double kv = 0;
  for (std::size_t i = 0; i < decoding_; ++i) {
    const double context = static_cast<double>(running_[i].request.prompt_tokens + running_[i].generated);
    kv += options_.geometry.kv_bytes(context);
    truth_.context_tokens += context;
  }
  const double experts = router_.bytes(decoding_ * (1 + options_.draft_tokens), random_);
  truth_.dense_bytes += options_.geometry.dense_bytes;
  truth_.expert_bytes += experts;
  truth_.kv_bytes += kv;
  return (options_.geometry.dense_bytes + experts + kv) / (options_.bandwidth * options_.efficiency);
}

// Moves waiting sequences into free places, and prefills as much as one step may; how many prompt tokens that is.
std::uint64_t Engine::admit() {
  const std::uint64_t chunk =
      options_.prefill_chunk > 0 ? options_.prefill_chunk : std::numeric_limits<std::uint64_t>::max();
  step_.prefilled = 0;
  std::uint64_t tokens = prefill(chunk);
  while (tokens < chunk && !waiting_.empty() && running_.size() < options_.batch_max) {
    Running sequence = waiting_.front();
    waiting_.pop_front();
    if (sequence.generated == 0) truth_.prompt_tokens += sequence.request.prompt_tokens;
    // What a preempted sequence has generated is computed once more, and so is what was cached of its prompt.
    sequence.prefill_left = sequence.generated == 0 ? sequence.request.prompt_tokens - sequence.request.cached_tokens
                                                    : sequence.request.prompt_tokens + sequence.generated;
    const std::uint64_t now = std::min(sequence.prefill_left, chunk - tokens);
    sequence.prefill_left -= now;
    tokens += now;
    ++step_.prefilled;
    running_.push_back(sequence);
  }
  return tokens;
}

// Goes on with the prompts that did not fit into the steps before.
std::uint64_t Engine::prefill(std::uint64_t tokens_max) {
  std::uint64_t tokens = 0;
  for (std::size_t i = decoding_; i < running_.size() && tokens < tokens_max; ++i) {
    const std::uint64_t now = std::min(running_[i].prefill_left, tokens_max - tokens);
    running_[i].prefill_left -= now;
    tokens += now;
    ++step_.prefilled;
  }
  return tokens;
}

// What a step's planned time is multiplied by.
double Engine::slowness(double seconds) {
  double factor = jitter_.factor(seconds, random_);
  if (warm_up_left_ > 0) {
    factor *= 1 + warm_up_left_ / warm_up_;
    warm_up_left_ -= factor * seconds;
  }
  return factor;
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
  (decodes ? sequence.decode_seconds : sequence.prefill_seconds) += seconds;
  if (sequence.prefill_left > 0) return;
  sequence.prefilling = false;
  const std::uint64_t tokens = decodes ? tokens_of_pass(sequence) : 1;
  sequence.generated += tokens;
  truth_.output_tokens += tokens;
  step_.emissions.push_back({sequence.request.id, sequence.generated, tokens, sequence.drafted, sequence.accepted,
                             sequence.generated >= sequence.request.output_tokens, sequence.prefill_seconds,
                             sequence.decode_seconds});
}

}  // namespace rooflined::simulator
