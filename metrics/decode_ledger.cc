// Order and membership: which sequences are in decode at which time. Billing is in decode_ledger_billing.cc.

#include "metrics/decode_ledger.h"

#include <algorithm>
#include <utility>

namespace rooflined {

DecodeLedger::DecodeLedger(const Options& options, LedgerSink& sink) : options_(options), sink_(sink) {}

void DecodeLedger::request(ExchangeId exchange, LineTime at) {
  enqueue({.at = at, .kind = Kind::kRequest, .id = exchange});
}

void DecodeLedger::request_over(ExchangeId exchange, LineTime at) {
  enqueue({.at = at, .kind = Kind::kRequestOver, .id = exchange});
}

void DecodeLedger::begin(SequenceId sequence, ExchangeId exchange, LineTime at, double prompt_tokens, bool whole) {
  enqueue(
      {.at = at, .kind = Kind::kBegin, .whole = whole, .id = sequence, .exchange = exchange, .value = prompt_tokens});
}

void DecodeLedger::tokens(SequenceId sequence, LineTime at, std::uint32_t count, std::uint32_t frames,
                          TokenSource source) {
  enqueue({.at = at,
           .kind = Kind::kTokens,
           .source = source,
           .frames = frames,
           .id = sequence,
           .value = static_cast<double>(count)});
}

void DecodeLedger::late_prompt(SequenceId sequence, LineTime at, double prompt_tokens) {
  enqueue({.at = at, .kind = Kind::kPrompt, .id = sequence, .value = prompt_tokens});
}

void DecodeLedger::loss(SequenceId sequence, LineTime at) {
  enqueue({.at = at, .kind = Kind::kLoss, .id = sequence});
}

void DecodeLedger::loss_everywhere(LineTime at) {
  enqueue({.at = at, .kind = Kind::kLossEverywhere});
}

void DecodeLedger::end(SequenceId sequence, LineTime at, Outcome outcome, std::optional<std::uint64_t> total,
                       std::optional<LineTime> finished_at) {
  enqueue({.at = at,
           .kind = Kind::kEnd,
           .outcome = outcome,
           .has_total = total.has_value(),
           .id = sequence,
           .value = static_cast<double>(total.value_or(0)),
           .finished_at = finished_at.value_or(LineTime::min())});
}

void DecodeLedger::enqueue(const Input& input) {
  Input placed = input;
  if (placed.at < edge_) {
    placed.at = edge_;
    sink_.on_late_input();
  }
  if (inputs_.empty() || inputs_.back().at <= placed.at) {
    inputs_.push_back(placed);
  } else {
    const auto after = std::upper_bound(inputs_.begin(), inputs_.end(), placed.at,
                                        [](LineTime at, const Input& other) { return at < other.at; });
    inputs_.insert(after, placed);
  }
  if (inputs_.size() > options_.inputs_max) release_until(inputs_.front().at);
}

void DecodeLedger::advance_to(LineTime now) {
  release_until(now - options_.reorder_age);
}

void DecodeLedger::finish() {
  if (!inputs_.empty()) release_until(inputs_.back().at);
  while (!in_decode_.empty()) leave_quietly(*in_decode_.front());
  settle(edge_);
}

void DecodeLedger::release_until(LineTime edge) {
  if (edge < edge_) return;
  while (!inputs_.empty() && inputs_.front().at <= edge) {
    const Input input = inputs_.front();
    inputs_.pop_front();
    apply(input);
  }
  edge_ = edge;
  while (!in_decode_.empty() && in_decode_.front()->last < edge - options_.silence_max) {
    leave(*in_decode_.front(), DecodeExit::kSilence, in_decode_.front()->interval_last);
  }
  settle(edge);
  forget_old_steps();
}

DecodeLedger::Sequence* DecodeLedger::find(SequenceId id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() || found->second->closed ? nullptr : found->second.get();
}

void DecodeLedger::apply(const Input& input) {
  switch (input.kind) {
    case Kind::kRequest:
      if (prefills_.emplace(input.id, input.at).second) prefilling_.add(input.at, 1);
      return;
    case Kind::kRequestOver:
      prefill_over(input.id, input.at);
      return;
    case Kind::kBegin:
      apply_begin(input);
      return;
    case Kind::kTokens:
      apply_tokens(input);
      return;
    case Kind::kPrompt:
      if (Sequence* sequence = find(input.id)) apply_prompt(*sequence, input.value);
      return;
    case Kind::kLoss:
      if (Sequence* sequence = find(input.id)) {
        sequence->whole = false;
        if (sequence->in_decode) leave(*sequence, DecodeExit::kLoss, sequence->interval_last);
      }
      return;
    case Kind::kLossEverywhere:
      for (auto& [id, sequence] : sequences_) {
        sequence->whole = sequence->whole && sequence->closed;
        if (sequence->in_decode) leave(*sequence, DecodeExit::kLoss, sequence->interval_last);
      }
      return;
    case Kind::kEnd:
      apply_end(input);
      return;
  }
}

void DecodeLedger::prefill_over(ExchangeId exchange, LineTime at) {
  if (prefills_.erase(exchange) != 0) prefilling_.add(at, -1);
}

void DecodeLedger::apply_begin(const Input& input) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = input.id;
  sequence->exchange = input.exchange;
  sequence->whole = input.whole;
  sequence->prompt_tokens = input.value;
  sequences_.emplace(input.id, std::move(sequence));
}

void DecodeLedger::apply_tokens(const Input& input) {
  Sequence* sequence = find(input.id);
  if (sequence == nullptr) return;
  sequence->recent[sequence->events++ % sequence->recent.size()] = input.at;
  if (!sequence->started) {
    sequence->started = true;
    sequence->first = sequence->last = input.at;
    sequence->first_tokens = sequence->counted = sequence->settled = input.value;
    enter(*sequence, input.at);
    prefill_over(sequence->exchange, input.at);
    sink_.on_first_tokens(input.at, input.value);
    if (input.source == TokenSource::kExactLive) {
      sink_.on_source(input.source, input.value, input.at, input.at);
    } else {
      sequence->estimated += input.value;
    }
  } else {
    LineTime a = sequence->last;
    if (!sequence->in_decode) {
      // It comes back: billed by the pace of who overtook it (or its own), not by the time that it was away.
      if (sequence->resume_interval > Duration(0)) {
        a = std::max(a, input.at - from_seconds(to_seconds(sequence->resume_interval) * input.value));
      }
      a = std::min(std::max(a, settled_until_), input.at);
      enter(*sequence, a);
    }
    add_interval(*sequence, a, input.at, input.value, input.frames, input.source);
    in_decode_.splice(in_decode_.end(), in_decode_, sequence->place);
  }
  overtake_others(*sequence);
}

void DecodeLedger::enter(Sequence& sequence, LineTime at) {
  membership_.add(std::max(at, settled_until_), 1);
  sequence.in_decode = true;
  sequence.place = in_decode_.insert(in_decode_.end(), &sequence);
}

void DecodeLedger::leave_quietly(Sequence& sequence) {
  membership_.add(std::max(sequence.last, settled_until_), -1);
  in_decode_.erase(sequence.place);
  sequence.in_decode = false;
}

void DecodeLedger::leave(Sequence& sequence, DecodeExit exit, Duration resume_interval) {
  leave_quietly(sequence);
  sequence.resume_interval = resume_interval;
  sink_.on_exit(exit);
}

void DecodeLedger::overtake_others(const Sequence& sequence) {
  if (sequence.events <= kOvertakenAfter) return;
  const LineTime fifth_last = sequence.recent[sequence.events % sequence.recent.size()];
  while (in_decode_.front() != &sequence && in_decode_.front()->last < fifth_last) {
    Sequence& overtaken = *in_decode_.front();
    const Duration pace = sequence.interval_last > Duration(0) ? sequence.interval_last : overtaken.interval_last;
    leave(overtaken, DecodeExit::kOvertaken, pace);
  }
}

void DecodeLedger::add_interval(Sequence& sequence, LineTime a, LineTime b, double tokens, std::uint32_t frames,
                                TokenSource source) {
  sequence.last = b;
  sequence.interval_last = b - a;
  sequence.counted += tokens;
  if (source != TokenSource::kExactLive) sequence.estimated += tokens;
  ++sequence.pending;
  const Pending pending{&sequence, a, b, tokens, frames, source};
  if (pending_.empty() || pending_.back().b <= b) {
    pending_.push_back(pending);
  } else {
    const auto after = std::upper_bound(pending_.begin(), pending_.end(), b,
                                        [](LineTime at, const Pending& other) { return at < other.b; });
    pending_.insert(after, pending);
  }
}

void DecodeLedger::apply_end(const Input& input) {
  Sequence* sequence = find(input.id);
  if (sequence == nullptr) return;
  if (input.has_total) sequence->total = input.value;
  sequence->outcome = input.outcome;
  // A token without a frame of its own (the stop token): the finish frame has its time.
  const bool unseen_token = input.has_total && sequence->whole && sequence->in_decode &&
                            input.value - sequence->counted >= 1 && input.finished_at > sequence->last;
  if (unseen_token) {
    add_interval(*sequence, sequence->last, input.finished_at, 1, 1, TokenSource::kExactFinal);
  }
  if (!sequence->started && input.has_total && sequence->whole) {
    // Nothing of it was seen on the way (not streamed): its tokens are known, its passes are not.
    sequence->first = sequence->last = input.at;
    sequence->counted = sequence->estimated = input.value;
    sink_.on_first_tokens(input.at, input.value);
  }
  if (sequence->in_decode) leave_quietly(*sequence);
  sequence->closed = true;
  if (sequence->pending == 0) close(*sequence);
}

void DecodeLedger::forget_old_steps() {
  constexpr std::size_t kStepsMin = 1024;
  if (membership_.size() + prefilling_.size() < 2 * steps_kept_ + kStepsMin) return;
  LineTime limit = settled_until_;
  if (!in_decode_.empty()) limit = std::min(limit, in_decode_.front()->last);
  for (const Pending& pending : pending_) limit = std::min(limit, pending.a);
  membership_.forget_before(limit);
  prefilling_.forget_before(limit);
  steps_kept_ = membership_.size() + prefilling_.size();
}

}  // namespace rooflined
