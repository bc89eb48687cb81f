// Settling and billing: ledger.md "Billing a settled interval".

#include "metrics/decode_ledger.h"

#include <algorithm>

namespace rooflined {

// F: below it no sequence in decode can still change the batch, and no burst can grow.
LineTime DecodeLedger::final_until(LineTime edge) const {
  if (in_decode_.empty()) return edge;
  LineTime until = in_decode_.front()->last;
  if (options_.speculates) {
    for (const Sequence* sequence : in_decode_) {
      if (sequence->burst.tokens > 0 || !sequence->head.empty()) until = std::min(until, sequence->burst_from);
    }
  }
  return std::min(edge, std::max(until, edge - options_.stall_max));
}

void DecodeLedger::settle(LineTime edge) {
  settled_until_ = std::max(settled_until_, final_until(edge));
  while (!pending_.empty() && pending_.front().b <= settled_until_) {
    const Pending pending = pending_.front();
    pending_.pop_front();
    if (pending.work == Work::kSeen) {
      bill(pending);
    } else {
      bill_hidden(pending);
    }
    Sequence& sequence = *pending.sequence;
    if (--sequence.pending == 0 && sequence.closed) close(sequence);
  }
}

// What all kinds of work have in common.
IntervalRecord DecodeLedger::record_of(const Pending& pending, LineTime a) const {
  IntervalRecord record;
  record.a = a;
  record.b = pending.b;
  record.tokens = pending.tokens;
  record.frames = pending.frames;
  record.source = pending.source;
  record.sequence_seconds = to_seconds(pending.b - a);
  const double context_first = pending.sequence->prompt_tokens + pending.sequence->settled;
  record.context_sum = pending.tokens * (context_first + (pending.tokens - 1) / 2);
  return record;
}

void DecodeLedger::bill(const Pending& pending) {
  Sequence& sequence = *pending.sequence;
  const double nanoseconds = static_cast<double>((pending.b - pending.a).count());
  IntervalRecord record = record_of(pending, pending.a);
  if (nanoseconds > 0) {
    record.batch = std::max(1.0, membership_.integral(pending.a, pending.b) / (options_.replicas * nanoseconds));
  } else if (sequence.batch_last > 0) {
    record.batch = sequence.batch_last;
  } else {
    record.batch = std::max(1.0, static_cast<double>(membership_.value_at(pending.b)) / options_.replicas);
  }
  sequence.batch_last = record.batch;

  const double passes = pending.passes;  // p
  record.passes = passes / record.batch;
  record.busy_seconds = record.sequence_seconds / record.batch;
  record.overlap_seconds = prefilling_.integral(pending.a, pending.b) * 1e-9 / record.batch;
  if (geometry_ != nullptr) {
    const double context_first = sequence.prompt_tokens + sequence.settled;
    record.bytes_known = true;
    const WeightBytes& weights = weight_bytes(record.batch);
    record.weights.dense = record.passes * weights.dense;
    if (passes == pending.tokens) {
      record.weights.experts = record.passes * weights.experts;
      record.kv_bytes = geometry_->kv_bytes_sum(context_first, passes);
    } else if (passes > 0) {
      // A verify pass routes every token that it verifies, and reads the cache once for all of them.
      record.weights.experts = record.passes * geometry_->weight_bytes(record.batch * pending.tokens / passes).experts;
      record.kv_bytes = passes * geometry_->kv_bytes(context_first);
    }
  }
  book(sequence, record, passes);
  if (options_.speculates && draft_geometry_ != nullptr) bill_drafts(sequence, record, passes);
  pace_.add(record.b, record.tokens, record.sequence_seconds);
  sink_.on_interval(record);
}

const WeightBytes& DecodeLedger::weight_bytes(double batch) {
  if (batch != weights_batch_) {
    weights_ = geometry_->weight_bytes(batch);
    weights_batch_ = batch;
  }
  return weights_;
}

// Into the sequence's own sums.
void DecodeLedger::book(Sequence& sequence, const IntervalRecord& record, double passes) {
  DecodeSequence::Sums& sums = sequence.sums;
  sums.tokens += record.tokens;
  sums.own_passes += passes;
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
  if (record.source == TokenSource::kExactLive) {
    sink_.on_source(record.source, record.tokens, record.a, record.b);
  }
}

}  // namespace rooflined
