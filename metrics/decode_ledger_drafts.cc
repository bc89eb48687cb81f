// What the model that drafts reads: design.md §3, "the draft model's own W per draft step".
//
// A step drafts one token for each sequence in the batch, and reads that sequence's cache. How many were drafted is
// told at the end of a stream, if at all; until then by the passes that told.

#include "metrics/decode_ledger.h"

#include <algorithm>

namespace rooflined {

DraftReads DecodeLedger::draft_reads(double drafts, double batch, double context) const {
  const WeightBytes step = draft_geometry_->weight_bytes(batch);
  DraftReads reads;
  reads.drafts = drafts;
  reads.weights = {drafts / batch * step.dense, drafts / batch * step.experts};
  reads.kv_bytes = drafts * draft_geometry_->kv_bytes(context);
  return reads;
}

void DecodeLedger::bill_drafts(Sequence& sequence, IntervalRecord& record, double passes) {
  if (!record.bytes_known || passes <= 0) return;
  // Unless told: what a pass yielded were its accepted drafts and a token that took the place of a rejected one.
  const double drafts = drafted_passes_ > 0 ? passes * drafts_told_ / drafted_passes_ : record.tokens;
  const DraftReads reads = draft_reads(drafts, record.batch, sequence.prompt_tokens + sequence.settled - record.tokens);
  record.weights.dense += reads.weights.dense;
  record.weights.experts += reads.weights.experts;
  record.kv_bytes += reads.kv_bytes;
  sequence.drafts.drafts += reads.drafts;
  sequence.drafts.weights.dense += reads.weights.dense;
  sequence.drafts.weights.experts += reads.weights.experts;
  sequence.drafts.kv_bytes += reads.kv_bytes;
}

// Tokens that each of its passes verified: more than it yielded, where the drafts were told.
double DecodeLedger::verified_of(const Pending& pending) {
  const Sequence& sequence = *pending.sequence;
  if (sequence.started || !sequence.known.draft_tokens) return pending.tokens / pending.passes;
  return 1 + static_cast<double>(*sequence.known.draft_tokens) / pending.passes;
}

// The drafts of an answer that was not streamed: steps of their own for the part `alone` of the time, and else beside
// the drafts of `beside` others.
void DecodeLedger::bill_unseen_drafts(const Pending& pending, IntervalRecord& record, double alone, double beside) {
  if (!pending.sequence->known.draft_tokens) return;
  const auto drafts = static_cast<double>(*pending.sequence->known.draft_tokens);
  drafts_told_ += drafts;
  drafted_passes_ += pending.passes;
  if (draft_geometry_ == nullptr || !record.bytes_known) return;
  const WeightBytes step = draft_geometry_->weight_bytes(1);
  const double marginal =
      draft_geometry_->weight_bytes(beside + 1).experts - draft_geometry_->weight_bytes(beside).experts;
  record.weights.dense += drafts * alone * step.dense;
  record.weights.experts += drafts * (alone * step.experts + (1 - alone) * marginal);
  record.kv_bytes += drafts * draft_geometry_->kv_bytes(record.context_sum / record.tokens);
}

// The number of drafts is known: what was billed becomes that.
void DecodeLedger::correct_drafts(Sequence& sequence) {
  const DecodeSequence::Sums& sums = sequence.sums;
  if (!sequence.known.draft_tokens || sums.own_passes <= 0 || sums.passes <= 0) return;
  const auto drafts = static_cast<double>(*sequence.known.draft_tokens);
  drafts_told_ += drafts;
  drafted_passes_ += sums.own_passes;
  if (draft_geometry_ == nullptr || sums.billed_tokens <= 0) return;
  const DraftReads reads =
      draft_reads(drafts, std::max(1.0, sums.own_passes / sums.passes), sums.context / sums.tokens);
  const DraftReads& billed = sequence.drafts;
  IntervalRecord record;
  record.a = sequence.first;
  record.b = sequence.last;
  record.batch = std::max(1.0, sequence.batch_last);
  record.bytes_known = true;
  record.weights.dense = reads.weights.dense - billed.weights.dense;
  record.weights.experts = reads.weights.experts - billed.weights.experts;
  record.kv_bytes = reads.kv_bytes - billed.kv_bytes;
  sink_.on_correction(record);
}

}  // namespace rooflined
