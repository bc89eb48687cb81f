// Work that the wire does not show when it is done: ledger.md "Hidden work", overtaken and client-limited sequences.

#include "metrics/decode_ledger.h"

#include <algorithm>
#include <cmath>

namespace rooflined {
namespace {

// A first token event with more tokens than frames of one pass or a slow start put there was held back.
constexpr double kFirstTokensMax = 8;
// Tokens that come with the finish frame after a silence of so many of the sequence's own intervals were held back.
constexpr double kSilentIntervals = 4;

}  // namespace

// `tokens` that were generated at some time before `end`, and after `earliest`.
void DecodeLedger::hide(Sequence& sequence, LineTime earliest, LineTime end, double tokens, double passes,
                        TokenSource source) {
  add_pending({&sequence, Work::kHidden, std::min(earliest, end), end, tokens, passes, 1, source});
}

// Nothing of it was seen on the way: it was not streamed.
void DecodeLedger::hide_unseen(Sequence& sequence, LineTime at) {
  const auto total = static_cast<double>(*sequence.known.tokens);
  if (total < 1) return;
  sequence.first = sequence.last = at;
  sequence.counted = sequence.estimated = total;
  sequence.settled = 1;
  sink_.on_first_tokens(at, 1);
  double passes = total - 1;
  // A pass yields its accepted drafts and one token more; the first token is the prefill's.
  const double accepted = static_cast<double>(sequence.known.draft_tokens_accepted.value_or(0));
  if (accepted < passes) {
    passes -= accepted;
  } else {
    sequence.known.draft_tokens.reset();
  }
  if (total > 1) hide(sequence, sequence.requested, at, total - 1, passes, TokenSource::kExactFinal);
}

// A stream that held back everything until its end (a tool call) bore it in its one token event.
void DecodeLedger::hide_first_tokens(Sequence& sequence) {
  const double held = sequence.first_tokens - 1;
  if (sequence.counted != sequence.first_tokens || held < kFirstTokensMax || sequence.requested >= sequence.first)
    return;
  sequence.first_tokens = sequence.settled = 1;
  sink_.on_first_tokens(sequence.first, -held);
  hide(sequence, sequence.requested, sequence.first, held, held, TokenSource::kEstimated);
}

// The finish frame has the time of tokens without a frame of their own: the stop token, or what was held back since the
// last event.
void DecodeLedger::take_unseen_at_finish(Sequence& sequence) {
  const LineTime at = sequence.known.finished_at.value_or(LineTime::min());
  const double missing = static_cast<double>(*sequence.known.tokens) - sequence.counted;
  if (missing < 1 || at <= sequence.last) return;
  const double borne = sequence.counted - sequence.first_tokens;
  const double interval = borne > 0 ? to_seconds(sequence.last - sequence.first) / borne : 0;
  const double silence = to_seconds(at - sequence.last);
  double tokens = 1;
  if (interval > 0 && silence > kSilentIntervals * interval) tokens = std::min(missing, std::round(silence / interval));
  if (sequence.lossy) tokens = std::clamp(1 + std::round(sequence.lost), 1.0, missing);
  const TokenGroup unseen{at, tokens, 1, TokenSource::kExactFinal};
  if (sequence.in_decode) {
    add_event(sequence, unseen);
  } else if (tokens > 1) {
    hide(sequence, sequence.last, at, tokens, tokens, unseen.source);
    count(sequence, unseen);
  }
}

// A sequence out of decode bears tokens again. It is billed by the pace of who overtook it (or its own), not by the
// time that it was away; what others' passes had generated for it meanwhile was held back.
void DecodeLedger::come_back(Sequence& sequence, const TokenGroup& event) {
  const LineTime before = sequence.last;
  note_event(sequence, event.at);
  count(sequence, event);
  sequence.burst_from = event.at;
  if (sequence.client_limited) {
    add_pending(
        {&sequence, Work::kClientLimited, before, event.at, event.tokens, event.tokens, event.frames, event.source});
    if (sequence.window_closed) return;
    sequence.client_limited = false;
    enter(sequence, event.at);
    return;
  }
  TokenGroup seen = event;
  if (sequence.overtaken && !options_.speculates && event.tokens > 1) {
    seen.tokens = 1;
    hide(sequence, before, event.at, event.tokens - 1, event.tokens - 1, event.source);
  }
  const double passes = options_.speculates ? 1 : seen.tokens;
  LineTime a = before;
  if (sequence.resume_interval > Duration(0)) {
    a = std::max(a, event.at - from_seconds(to_seconds(sequence.resume_interval) * passes));
  }
  a = std::min(std::max(a, settled_until_), event.at);
  enter(sequence, a);
  add_interval(sequence, a, seen, passes);
  sequence.bursts += 1;
}

// While its client does not read, what the wire shows says nothing of when its tokens were made.
void DecodeLedger::apply_window(Sequence& sequence, bool closed) {
  sequence.window_closed = closed;
  if (closed && sequence.in_decode) {
    leave(sequence, DecodeExit::kClient, sequence.interval_last);
  } else if (closed && sequence.started) {
    sequence.client_limited = true;
  }
}

void DecodeLedger::bill_hidden(const Pending& pending) {
  const LineTime a = pace_.start_of(pending.b, pending.a, pending.tokens);
  IntervalRecord record = record_of(pending, a);
  const double nanoseconds = static_cast<double>((pending.b - a).count());
  // The part in which nobody is known to have decoded, and who did in the rest.
  double alone = anyone_.value_at(pending.b) > 0 ? 0 : 1;
  double beside = static_cast<double>(everyone_.value_at(pending.b)) / options_.replicas;
  if (nanoseconds > 0) {
    const double accompanied = anyone_.integral(a, pending.b);
    alone = 1 - accompanied / nanoseconds;
    beside = accompanied > 0 ? everyone_.integral(a, pending.b) / (options_.replicas * accompanied) : 0;
  }
  record.batch = 1 + beside * (1 - alone);
  // What a client does not read may have been generated at any time: only what others' passes read for it is sure.
  const double own = pending.work == Work::kHidden ? alone : 0;
  record.passes = pending.passes * own;
  record.busy_seconds = record.sequence_seconds * own;
  if (geometry_ != nullptr && pending.passes > 0) {
    const double tokens = pending.tokens / pending.passes;  // of a pass
    const double verified = verified_of(pending);
    const double marginal =
        geometry_->weight_bytes((beside + 1) * verified).experts - geometry_->weight_bytes(beside * verified).experts;
    record.bytes_known = true;
    record.weights.dense = record.passes * geometry_->dense_bytes;
    record.weights.experts =
        record.passes * geometry_->weight_bytes(verified).experts + pending.passes * (1 - alone) * marginal;
    record.kv_bytes =
        geometry_->kv_bytes_sum(pending.sequence->prompt_tokens + pending.sequence->settled, pending.tokens) / tokens;
  }
  for (StepIntegral* steps : {&everyone_, &anyone_}) {
    steps->add(a, 1);
    steps->add(pending.b, -1);
  }
  book(*pending.sequence, record, pending.passes);
  if (!pending.sequence->started) bill_unseen_drafts(pending, record, alone, beside);
  sink_.on_correction(record);
}

}  // namespace rooflined
