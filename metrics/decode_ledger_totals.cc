// What is known of a sequence only late: ledger.md "Totals that come late".

#include "metrics/decode_ledger.h"

#include <algorithm>

namespace rooflined {

// KV(c + d) − KV(c) over the tokens that are settled; later ones are billed with the right length anyway.
void DecodeLedger::apply_prompt(Sequence& sequence, double prompt_tokens) {
  const double before = sequence.prompt_tokens;
  sequence.prompt_tokens = prompt_tokens;
  DecodeSequence::Sums& sums = sequence.sums;
  if (prompt_tokens == before || sums.tokens <= 0) return;
  IntervalRecord record;
  record.a = sequence.first;
  record.b = sequence.last;
  record.batch = std::max(1.0, sequence.batch_last);
  record.context_sum = (prompt_tokens - before) * sums.tokens;
  const double billed = sums.billed_tokens;
  if (geometry_ != nullptr && billed > 0) {
    const double generated_before = sequence.settled - billed;
    const double reads = sums.own_passes / sums.tokens;
    record.bytes_known = true;
    record.kv_bytes = reads * (geometry_->kv_bytes_sum(prompt_tokens + generated_before, billed) -
                               geometry_->kv_bytes_sum(before + generated_before, billed));
  }
  sums.context += record.context_sum;
  sums.kv_bytes += record.kv_bytes;
  sink_.on_correction(record);
}

void DecodeLedger::close(Sequence& sequence) {
  const bool confirmed = sequence.known.tokens && sequence.whole;
  const double missing = confirmed ? static_cast<double>(*sequence.known.tokens) - sequence.counted : 0;
  if (missing != 0) correct_total(sequence, missing);
  if (confirmed && sequence.started) {
    correct_accepted(sequence);
    correct_drafts(sequence);
  }
  keep_undecided(sequence);
  if (sequence.estimated != 0 || missing != 0) {
    sink_.on_source(confirmed ? TokenSource::kExactFinal : TokenSource::kEstimated, sequence.estimated + missing,
                    sequence.first, sequence.last);
  }
  sink_.on_closed(ClosedSequence{sequence.counted + missing, sequence.sums.sequence_seconds, sequence.outcome});
  sequences_.erase(sequence.id);
}

void DecodeLedger::correct_total(Sequence& sequence, double missing) {
  DecodeSequence::Sums& sums = sequence.sums;
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
      sums.own_passes += scale * sums.own_passes;
    }
  }
  // What comes after this corrects the passes of all its tokens, of the missing ones as of the others.
  if (sums.tokens > 0) sums.billed_tokens *= 1 + missing / sums.tokens;
  sequence.settled += missing;
  sums.tokens += record.tokens;
  sums.context += record.context_sum;
  sums.passes += record.passes;
  sums.weights.dense += record.weights.dense;
  sums.weights.experts += record.weights.experts;
  sums.kv_bytes += record.kv_bytes;
  sink_.on_correction(record);
}

// A pass yields its accepted drafts and one token more; the first token is the prefill's.
void DecodeLedger::correct_accepted(Sequence& sequence) {
  const SequenceTotal& known = sequence.known;
  if (!options_.speculates || !known.draft_tokens || !known.draft_tokens_accepted) return;
  const double passes = static_cast<double>(*known.tokens) - 1 - static_cast<double>(*known.draft_tokens_accepted);
  // Of a sequence without an interval no pass was seen; fewer than one cannot be.
  if (passes < 1 || sequence.sums.own_passes <= 0) return;
  correct_passes(sequence, passes, 1 + static_cast<double>(*known.draft_tokens) / passes);
}

// What it takes to make of the passes that were billed so many, each of which verified so many tokens.
IntervalRecord DecodeLedger::pass_correction(const DecodeSequence::Sums& sums, double passes, double verified) const {
  IntervalRecord record;
  const double scale = passes / sums.own_passes;
  record.batch = sums.own_passes / sums.passes;
  record.passes = (scale - 1) * sums.passes;
  if (geometry_ == nullptr || sums.billed_tokens <= 0) return record;
  record.bytes_known = true;
  record.weights.dense = (scale - 1) * sums.weights.dense;
  record.kv_bytes = (scale - 1) * sums.kv_bytes;
  const double passes_with_bytes = scale * sums.passes * std::min(1.0, sums.billed_tokens / sums.tokens);
  record.weights.experts =
      passes_with_bytes * geometry_->weight_bytes(record.batch * verified).experts - sums.weights.experts;
  return record;
}

void DecodeLedger::correct_passes(Sequence& sequence, double passes, double verified) {
  DecodeSequence::Sums& sums = sequence.sums;
  IntervalRecord record = pass_correction(sums, passes, verified);
  if (record.bytes_known) {
    // A pass reads the cache once: as many of the contexts as there were passes, evenly.
    const double context_first = sequence.prompt_tokens + sequence.settled - sums.billed_tokens;
    record.kv_bytes = geometry_->kv_bytes_sum(context_first, sums.billed_tokens) * passes / sums.tokens - sums.kv_bytes;
  }
  record.a = sequence.first;
  record.b = sequence.last;
  sums.own_passes = passes;
  sums.passes += record.passes;
  sums.weights.dense += record.weights.dense;
  sums.weights.experts += record.weights.experts;
  sums.kv_bytes += record.kv_bytes;
  sink_.on_correction(record);
}

}  // namespace rooflined
