// Exchange, where it turns what frames say into tokens of its sequences, and into their totals at the end.

#include "collectors/tap/exchange_tracker.h"

#include <algorithm>

namespace rooflined::tap {

// What of the frame's text is new: neither the prompt, nor what came before.
std::uint32_t Exchange::new_characters(const ChoiceFacts& facts, Sequence& sequence) {
  std::uint64_t before = 0;
  if (facts.text_so_far && facts.characters >= sequence.characters) before = sequence.characters;
  if (request_facts_.echo && !sequence.echo_seen && facts.has_text) {
    sequence.echo_seen = true;
    before = request_facts_.echoed_characters != 0 ? 0 : request_facts_.prompt_characters / request_facts_.prompts;
  }
  return facts.characters - static_cast<std::uint32_t>(std::min<std::uint64_t>(before, facts.characters));
}

bool Exchange::empty_text_is_token(const ChoiceFacts& facts) const {
  // TGI sends a frame for each token, the stop token's with its reason.
  if (family_ == ServerFamily::kTgi) return true;
  if (facts.finished || facts.role) return false;
  if (family_ == ServerFamily::kTensorRtLlm) return true;
  return family_ == ServerFamily::kSglang && dialect_ != nullptr && dialect_->name == "openai_completions";
}

void Exchange::apply_choice(const ChoiceFacts& facts) {
  Sequence* sequence = sequence_of(facts.index);
  if (sequence == nullptr) return;
  const bool echo = request_facts_.echoed_characters != 0 && !sequence->echo_seen && facts.has_text &&
                    facts.characters == request_facts_.echoed_characters;
  if (echo) {
    sequence->echo_seen = true;
    return;
  }
  const TokenCounter::Context context{
      .joined_late = orphan_,
      .lists_repeat = family_ == ServerFamily::kKoboldCpp,
      .first_list_has_prompt = request_facts_.echo,
      .empty_text_is_token = empty_text_is_token(facts),
  };
  // A count behind the finish is the total: nothing came with it.
  if (sequence->finished_at && facts.cumulative && !facts.has_text && *facts.cumulative <= kSequenceTokensMax) {
    if (!remote_) sequence->total = facts.cumulative;
    return;
  }
  if (facts.finished && !sequence->finished_at) {
    sequence->finished_at = now_;
    last_finished_ = facts.index;
  }
  if (request_facts_.echo_only || remote_) return;
  const CountedTokens counted = sequence->counter.count(facts, context);
  if (counted.implausible) context_.counters.count(ParseError::kImplausible);
  const std::uint32_t characters = new_characters(facts, *sequence);
  sequence->characters += characters;
  sequence->pending_characters += characters;
  if (facts.reasoning) sequence->reasoning_tokens += counted.tokens;
  if (counted.tokens == 0) return;
  if (counted.source == TokenSource::kEstimated) sequence->pending_source = TokenSource::kEstimated;
  sequence->pending_tokens += counted.tokens;
  tokens_borne_ += counted.tokens;
  ++sequence->pending_frames;
  pending_ = true;
}

void Exchange::apply_totals(const FrameFacts& facts) {
  if (facts.total && *facts.total > kSequenceTokensMax) {
    context_.counters.count(ParseError::kImplausible);
    return;
  }
  if (remote_) return;
  const bool of_one = facts.choices.size() == 1 || facts.scope == TotalScope::kLastFinished || sequences_.size() == 1;
  Sequence* sequence = nullptr;
  if (of_one && (facts.total || facts.draft_tokens)) {
    const bool named = facts.choices.size() == 1;
    const std::uint32_t only = sequences_.size() == 1 ? sequences_.front().choice : last_finished_;
    sequence = sequence_of(named ? facts.choices.front().index : only);
  }
  if (sequence != nullptr && facts.draft_tokens) {
    sequence->draft_tokens = facts.draft_tokens;
    sequence->draft_tokens_accepted = facts.draft_tokens_accepted;
  }
  if (!facts.total) return;
  if (facts.scope == TotalScope::kSum) {
    sum_total_ = facts.total;
  } else if (sequence != nullptr) {
    sequence->total = facts.total;
  }
}

Exchange::Sequence* Exchange::sequence_of(std::uint32_t choice) {
  for (Sequence& sequence : sequences_) {
    if (sequence.choice == choice) return &sequence;
  }
  if (sequences_.size() >= context_.limits.sequences_max) {
    context_.counters.count(ParseError::kTooManySequences);
    return nullptr;
  }
  Sequence& added = sequences_.emplace_back();
  added.choice = choice;
  return &added;
}

std::vector<SequenceTotal> Exchange::totals() {
  const bool sum_is_all = sum_total_.has_value() && sequences_.size() <= 1;
  if (sum_is_all && sequences_.empty()) sequence_of(0);
  std::vector<SequenceTotal> totals;
  totals.reserve(sequences_.size());
  bool any_open = false;
  for (Sequence& sequence : sequences_) {
    // A counter on the finishing frame is the sequence's total.
    if (!sequence.total && sequence.finished_at) sequence.total = sequence.counter.cumulative();
    // Ollama makes such an answer in two runs and counts the second only: the thinking came from the first.
    if (request_facts_.constrained && sequence.total && *sequence.total < sequence.counter.counted()) {
      *sequence.total += sequence.reasoning_tokens;
    }
    if (sum_is_all) sequence.total = sum_total_;
    any_open = any_open || !sequence.total;
    totals.push_back({.choice = sequence.choice,
                      .tokens = sequence.total,
                      .finished_at = sequence.finished_at,
                      .characters = sequence.characters,
                      .draft_tokens = sequence.draft_tokens,
                      .draft_tokens_accepted = sequence.draft_tokens_accepted});
  }
  if (sum_total_ && any_open) {
    std::vector<std::uint64_t> weights;
    std::vector<std::uint64_t> shares(sequences_.size());
    const bool counted =
        std::any_of(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return s.counter.counted() != 0; });
    for (const Sequence& sequence : sequences_)
      weights.push_back(counted ? sequence.counter.counted() : sequence.characters);
    apportion(*sum_total_, weights, shares);
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i].tokens = shares[i];
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (sequences_[i].counter.counted() != 0 || totals[i].tokens) totals[kept++] = totals[i];
  }
  totals.resize(kept);
  return totals;
}

void Exchange::flush(LineTime at) {
  if (!pending_) return;
  pending_ = false;
  advance(at);
  for (Sequence& sequence : sequences_) {
    if (sequence.pending_tokens == 0) continue;
    TokenEvent event;
    event.exchange = id_;
    event.choice = sequence.choice;
    event.at = now_;
    event.tokens = sequence.pending_tokens;
    event.frames = sequence.pending_frames;
    event.characters = sequence.pending_characters;
    event.source = sequence.pending_source;
    sequence.pending_tokens = 0;
    sequence.pending_frames = 0;
    sequence.pending_characters = 0;
    sequence.pending_source = TokenSource::kExactLive;
    context_.sink.on_tokens(event);
  }
}

}  // namespace rooflined::tap
