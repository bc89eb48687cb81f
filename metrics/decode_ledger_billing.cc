// Settling and billing: ledger.md "Billing a settled interval" and "Totals that come late".

#include "metrics/decode_ledger.h"

#include <algorithm>

namespace rooflined {

// F: below it no sequence in decode can still change the batch.
void DecodeLedger::settle(LineTime edge) {
  LineTime until = edge;
  if (!in_decode_.empty()) until = std::min(edge, std::max(in_decode_.front()->last, edge - options_.stall_max));
  settled_until_ = std::max(settled_until_, until);
  while (!pending_.empty() && pending_.front().b <= settled_until_) {
    const Pending pending = pending_.front();
    pending_.pop_front();
    bill(pending);
    Sequence& sequence = *pending.sequence;
    if (--sequence.pending == 0 && sequence.closed) close(sequence);
  }
}

void DecodeLedger::bill(const Pending& pending) {
  Sequence& sequence = *pending.sequence;
  const double nanoseconds = static_cast<double>((pending.b - pending.a).count());
  IntervalRecord record;
  record.a = pending.a;
  record.b = pending.b;
  record.tokens = pending.tokens;
  record.frames = pending.frames;
  record.source = pending.source;
  if (nanoseconds > 0) {
    record.batch = std::max(1.0, membership_.integral(pending.a, pending.b) / (options_.replicas * nanoseconds));
  } else if (sequence.batch_last > 0) {
    record.batch = sequence.batch_last;
  } else {
    record.batch = std::max(1.0, static_cast<double>(membership_.value_at(pending.b)) / options_.replicas);
  }
  sequence.batch_last = record.batch;

  const double passes = options_.speculates ? 1 : pending.tokens;  // p
  const double context_first = sequence.prompt_tokens + sequence.settled;
  record.passes = passes / record.batch;
  record.sequence_seconds = nanoseconds * 1e-9;
  record.busy_seconds = record.sequence_seconds / record.batch;
  record.overlap_seconds = prefilling_.integral(pending.a, pending.b) * 1e-9 / record.batch;
  record.context_sum = pending.tokens * (context_first + (pending.tokens - 1) / 2);
  if (geometry_ != nullptr) {
    record.bytes_known = true;
    const WeightBytes weights = geometry_->weight_bytes(record.batch);
    record.weights.dense = record.passes * weights.dense;
    // A verify pass routes every token that it verifies.
    const double experts =
        options_.speculates ? geometry_->weight_bytes(record.batch * pending.tokens).experts : weights.experts;
    record.weights.experts = record.passes * experts;
    record.kv_bytes = geometry_->kv_bytes_sum(context_first, passes);
  }

  Sums& sums = sequence.sums;
  sums.tokens += record.tokens;
  sums.passes += record.passes;
  sums.sequence_seconds += record.sequence_seconds;
  sums.busy_seconds += record.busy_seconds;
  sums.overlap_seconds += record.overlap_seconds;
  sums.context += record.context_sum;
  sums.weights.dense += record.weights.dense;
  sums.weights.experts += record.weights.experts;
  sums.kv_bytes += record.kv_bytes;
  if (record.bytes_known) sums.billed_tokens += record.tokens;
  sequence.settled += record.tokens;
  sink_.on_interval(record);
  if (record.source == TokenSource::kExactLive) {
    sink_.on_source(record.source, record.tokens, record.a, record.b);
  }
}

// KV(c + d) − KV(c) over the tokens that are settled; later ones are billed with the right length anyway.
void DecodeLedger::apply_prompt(Sequence& sequence, double prompt_tokens) {
  const double before = sequence.prompt_tokens;
  sequence.prompt_tokens = prompt_tokens;
  const double billed = sequence.sums.billed_tokens;
  if (prompt_tokens == before || sequence.sums.tokens <= 0) return;
  IntervalRecord record;
  record.a = sequence.first;
  record.b = sequence.last;
  record.batch = std::max(1.0, sequence.batch_last);
  record.context_sum = (prompt_tokens - before) * sequence.sums.tokens;
  if (geometry_ != nullptr && billed > 0) {
    const double generated_before = sequence.settled - billed;
    const double reads = options_.speculates ? sequence.sums.passes * record.batch / billed : 1;
    record.bytes_known = true;
    record.kv_bytes = reads * (geometry_->kv_bytes_sum(prompt_tokens + generated_before, billed) -
                               geometry_->kv_bytes_sum(before + generated_before, billed));
  }
  sequence.sums.context += record.context_sum;
  sequence.sums.kv_bytes += record.kv_bytes;
  sink_.on_correction(record);
}

void DecodeLedger::close(Sequence& sequence) {
  const bool confirmed = sequence.total && sequence.whole;
  const double missing = confirmed ? *sequence.total - sequence.counted : 0;
  if (missing != 0) correct_total(sequence, missing);
  if (sequence.estimated != 0 || missing != 0) {
    sink_.on_source(confirmed ? TokenSource::kExactFinal : TokenSource::kEstimated, sequence.estimated + missing,
                    sequence.first, sequence.last);
  }
  sink_.on_closed(ClosedSequence{sequence.counted + missing, sequence.sums.sequence_seconds, sequence.outcome});
  sequences_.erase(sequence.id);
}

void DecodeLedger::correct_total(Sequence& sequence, double missing) {
  const Sums& sums = sequence.sums;
  IntervalRecord record;
  record.a = sequence.first;
  record.b = sequence.last;
  record.tokens = missing;
  record.source = TokenSource::kExactFinal;
  record.batch = std::max(1.0, sequence.batch_last);
  if (sums.tokens > 0) {
    const double scale = missing / sums.tokens;  // f
    record.context_sum = scale * sums.context;
    if (!options_.speculates) {
      record.bytes_known = sums.billed_tokens > 0;
      record.passes = scale * sums.passes;
      record.weights.dense = scale * sums.weights.dense;
      record.weights.experts = scale * sums.weights.experts;
      record.kv_bytes = scale * sums.kv_bytes;
    }
  }
  sink_.on_correction(record);
}

}  // namespace rooflined
