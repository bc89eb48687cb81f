// Order and membership: which sequences are in decode at which time. Bursts, billing and what comes late are in files
// of their own: decode_ledger_bursts.cc, _billing.cc, _hidden.cc, _totals.cc.

#include "metrics/decode_ledger.h"

#include <algorithm>
#include <utility>

namespace rooflined {

DecodeLedger::DecodeLedger(const Options& options, LedgerSink& sink) : options_(options), sink_(sink) {}

void DecodeLedger::request(ExchangeId exchange, LineTime at, bool streamed) {
  enqueue({.at = at, .kind = Kind::kRequest, .flag = streamed, .id = exchange});
}

void DecodeLedger::request_over(ExchangeId exchange, LineTime at) {
  enqueue({.at = at, .kind = Kind::kRequestOver, .id = exchange});
}

void DecodeLedger::begin(SequenceId sequence, ExchangeId exchange, LineTime at, double prompt_tokens, bool whole) {
  enqueue(
      {.at = at, .kind = Kind::kBegin, .flag = whole, .id = sequence, .exchange = exchange, .value = prompt_tokens});
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

void DecodeLedger::loss(SequenceId sequence, LineTime at, double tokens) {
  enqueue({.at = at, .kind = Kind::kLoss, .id = sequence, .value = tokens});
}

void DecodeLedger::client_window(SequenceId sequence, LineTime at, bool closed) {
  enqueue({.at = at, .kind = Kind::kWindow, .flag = closed, .id = sequence});
}

void DecodeLedger::loss_everywhere(LineTime at) {
  enqueue({.at = at, .kind = Kind::kLossEverywhere});
}

void DecodeLedger::end(SequenceId sequence, LineTime at, Outcome outcome, const SequenceTotal& known) {
  known_.emplace(++known_next_, known);
  enqueue({.at = at, .kind = Kind::kEnd, .outcome = outcome, .id = sequence, .known = known_next_});
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
      if (prefills_.emplace(input.id, Prefill{input.at, input.flag}).second && input.flag) {
        prefilling_.add(input.at, 1);
      }
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
      if (Sequence* sequence = find(input.id)) apply_loss(*sequence, input.value);
      return;
    case Kind::kWindow:
      if (Sequence* sequence = find(input.id)) apply_window(*sequence, input.flag);
      return;
    case Kind::kLossEverywhere:
      for (auto& [id, sequence] : sequences_) {
        if (!sequence->closed) apply_loss(*sequence, 0);
      }
      return;
    case Kind::kEnd:
      apply_end(input);
      return;
  }
}

void DecodeLedger::prefill_over(ExchangeId exchange, LineTime at) {
  const auto prefill = prefills_.extract(exchange);
  if (!prefill.empty() && prefill.mapped().streamed) prefilling_.add(at, -1);
}

void DecodeLedger::apply_begin(const Input& input) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = input.id;
  sequence->exchange = input.exchange;
  sequence->whole = input.flag;
  sequence->prompt_tokens = input.value;
  const auto asked = prefills_.find(input.exchange);
  sequence->requested = asked == prefills_.end() ? input.at : asked->second.at;
  sequences_.emplace(input.id, std::move(sequence));
}

void DecodeLedger::apply_tokens(const Input& input) {
  Sequence* sequence = find(input.id);
  if (sequence == nullptr) return;
  TokenGroup event{input.at, input.value, input.frames, input.source};
  const double lost = sequence->lossy ? lost_before(*sequence, event) : 0;
  if (lost > 0) {
    event.tokens += lost;
    event.source = TokenSource::kEstimated;
  }
  if (!sequence->started) {
    start(*sequence, event);
  } else if (!sequence->in_decode) {
    come_back(*sequence, event);
  } else {
    add_event(*sequence, event);
    if (lost > 0 && sequence->sums.tokens > 0) {
      sequence->burst_passes += lost * sequence->sums.own_passes / sequence->sums.tokens;
    }
    in_decode_.splice(in_decode_.end(), in_decode_, sequence->place);
  }
  overtake_others(*sequence);
  if (verdict_ == SpeculationEvidence::Verdict::kSpeculates) found_speculating();
}

void DecodeLedger::note_event(Sequence& sequence, LineTime at) {
  sequence.recent[sequence.events++ % sequence.recent.size()] = at;
}

void DecodeLedger::count(Sequence& sequence, const TokenGroup& event) {
  sequence.last = event.at;
  sequence.counted += event.tokens;
  sequence.frames += event.frames;
  if (event.source != TokenSource::kExactLive) sequence.estimated += event.tokens;
}

// The first token event: output tokens only.
void DecodeLedger::start(Sequence& sequence, const TokenGroup& event) {
  sequence.started = true;
  sequence.first = sequence.burst_from = first_tokens_last_ = event.at;
  sequence.first_tokens = sequence.settled = event.tokens;
  note_event(sequence, event.at);
  count(sequence, event);
  enter(sequence, event.at);
  prefill_over(sequence.exchange, event.at);
  sink_.on_first_tokens(event.at, event.tokens);
  if (event.source == TokenSource::kExactLive) sink_.on_source(event.source, event.tokens, event.at, event.at);
}

void DecodeLedger::step(LineTime at, std::int64_t delta) {
  at = std::max(at, settled_until_);
  membership_.add(at, delta);
  everyone_.add(at, delta);
  anyone_.add(at, delta);
}

void DecodeLedger::enter(Sequence& sequence, LineTime at) {
  step(at, 1);
  sequence.in_decode = true;
  sequence.place = in_decode_.insert(in_decode_.end(), &sequence);
}

void DecodeLedger::leave_quietly(Sequence& sequence) {
  end_bursts(sequence);
  step(sequence.last, -1);
  in_decode_.erase(sequence.place);
  sequence.in_decode = false;
}

void DecodeLedger::leave(Sequence& sequence, DecodeExit exit, Duration resume_interval) {
  leave_quietly(sequence);
  sequence.resume_interval = resume_interval;
  sequence.overtaken = exit == DecodeExit::kOvertaken;
  sequence.client_limited = exit == DecodeExit::kClient;
  sink_.on_exit(exit);
}

void DecodeLedger::overtake_others(const Sequence& sequence) {
  // One whose client does not read is in nobody's batch: when its tokens come says nothing about the others.
  if (!sequence.in_decode || sequence.events <= Sequence::kOvertakenAfter) return;
  const LineTime fifth_last = sequence.recent[sequence.events % sequence.recent.size()];
  while (in_decode_.front() != &sequence && in_decode_.front()->last < fifth_last) {
    Sequence& overtaken = *in_decode_.front();
    const Duration pace = sequence.interval_last > Duration(0) ? sequence.interval_last : overtaken.interval_last;
    leave(overtaken, DecodeExit::kOvertaken, pace);
  }
}

void DecodeLedger::add_interval(Sequence& sequence, LineTime a, const TokenGroup& event, double passes) {
  sequence.interval_last = event.at - a;
  add_pending({&sequence, Work::kSeen, a, event.at, event.tokens, passes, event.frames, event.source});
}

void DecodeLedger::add_pending(const Pending& pending) {
  ++pending.sequence->pending;
  if (pending_.empty() || pending_.back().b <= pending.b) {
    pending_.push_back(pending);
  } else {
    const auto after = std::upper_bound(pending_.begin(), pending_.end(), pending.b,
                                        [](LineTime at, const Pending& other) { return at < other.b; });
    pending_.insert(after, pending);
  }
}

void DecodeLedger::apply_end(const Input& input) {
  const auto known = known_.extract(input.known);
  Sequence* sequence = find(input.id);
  if (sequence == nullptr) return;
  sequence->known = known.mapped();
  sequence->outcome = input.outcome;
  if (sequence->known.draft_tokens.value_or(0) > 0) found_speculating();
  if (sequence->whole && sequence->started) hide_first_tokens(*sequence);
  if (sequence->known.tokens && !total_fits(*sequence)) sequence->whole = false;
  if (sequence->whole && sequence->known.tokens) {
    if (sequence->started) {
      take_unseen_at_finish(*sequence);
    } else {
      hide_unseen(*sequence, input.at);
    }
  }
  if (sequence->in_decode) leave_quietly(*sequence);
  add_total_to_evidence(*sequence);
  sequence->closed = true;
  if (sequence->pending == 0) close(*sequence);
  if (verdict_ == SpeculationEvidence::Verdict::kSpeculates) found_speculating();
}

void DecodeLedger::forget_old_steps() {
  constexpr std::size_t kStepsMin = 1024;
  // Hidden work is laid back over no more than this.
  constexpr Duration kReachMax = std::chrono::minutes(10);
  if (membership_.size() + prefilling_.size() + everyone_.size() < 2 * steps_kept_ + kStepsMin) return;
  LineTime limit = settled_until_;
  for (const auto& [id, prefill] : prefills_) limit = std::min(limit, prefill.at);
  for (const auto& [id, sequence] : sequences_) {
    if (sequence->started && !sequence->closed) {
      limit = std::min(limit, std::min(sequence->last, sequence->burst_from));
    }
  }
  for (const Pending& pending : pending_) limit = std::min(limit, pending.a);
  limit = std::max(limit, settled_until_ - kReachMax);
  for (StepIntegral* steps : {&membership_, &prefilling_, &everyone_, &anyone_}) steps->forget_before(limit);
  steps_kept_ = membership_.size() + prefilling_.size() + everyone_.size();
}

}  // namespace rooflined
