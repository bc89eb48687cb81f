// Bursts, and engines found to speculate: ledger.md "Speculation".
//
// A sequence's token events are put together into bursts whether or not its engine is known to speculate. Where it is,
// a burst is one interval of one pass, billed when the next one begins. Where it is not, each event is billed at once
// with a pass for each token, and the bursts are evidence; found out, what was billed is put right.

#include "metrics/decode_ledger.h"

#include <algorithm>

namespace rooflined {
namespace {

// Closed sequences that can still be put right; the evidence takes a few dozen bursts.
constexpr std::size_t kUndecidedMax = 256;

}  // namespace

void DecodeLedger::add_event(Sequence& sequence, const TokenGroup& event) {
  const LineTime before = sequence.last;
  const bool head = !sequence.splitter.head_known();
  sequence.splitter.learn(event.at - before);
  if (sequence.splitter.begins(event.at - before)) note_event(sequence, event.at);
  count(sequence, event);
  if (!options_.speculates) add_interval(sequence, before, event, event.tokens);
  if (!head) return add_to_burst(sequence, event);
  if (sequence.head.capacity() == 0) sequence.head.reserve(BurstSplitter::kHead);
  sequence.head.push_back(event);
  if (sequence.splitter.head_known()) split_head(sequence);
}

// The first gaps are known, or there are no more: their bursts can be told.
void DecodeLedger::split_head(Sequence& sequence) {
  const std::vector<TokenGroup> head = std::move(sequence.head);
  sequence.head = {};
  for (const TokenGroup& event : head) add_to_burst(sequence, event);
}

void DecodeLedger::add_to_burst(Sequence& sequence, const TokenGroup& event) {
  TokenGroup& burst = sequence.burst;
  const bool grows = burst.tokens > 0;
  const bool begins = sequence.splitter.begins(event.at - (grows ? burst.at : sequence.burst_from));
  if (grows && !begins) {
    sequence.burst_guessed = sequence.burst_guessed || event.guessed();
    burst.at = event.at;
    burst.tokens += event.tokens;
    burst.frames = std::max(burst.frames, event.frames);
    if (event.source != TokenSource::kExactLive) burst.source = event.source;
    return;
  }
  end_burst(sequence);
  burst = event;
  sequence.burst_guessed = event.guessed();
  if (begins) sequence.burst_passes = 1;
}

void DecodeLedger::end_burst(Sequence& sequence) {
  TokenGroup& burst = sequence.burst;
  if (burst.tokens == 0) return;
  if (options_.speculates) {
    add_interval(sequence, sequence.burst_from, burst, sequence.burst_passes);
  } else {
    sequence.bursts += 1;
    // A pass that prefills a prompt is longer, and says nothing of what it yields.
    if (first_tokens_last_ <= sequence.burst_from) {
      const double seconds = to_seconds(burst.at - sequence.burst_from);
      if (burst.source != TokenSource::kExactLive) evidence_.add_length(sequence.evidence, seconds);
      if (!sequence.burst_guessed) evidence_.add(sequence.evidence, burst.tokens, seconds);
      verdict_ = evidence_.verdict();
    }
  }
  sequence.burst_from = burst.at;
  sequence.burst_passes = 1;
  burst.tokens = 0;
}

void DecodeLedger::end_bursts(Sequence& sequence) {
  split_head(sequence);
  end_burst(sequence);
}

void DecodeLedger::found_speculating() {
  if (options_.speculates) return;
  for (auto& [id, sequence] : sequences_) split_head(*sequence);
  options_.speculates = true;
  for (auto& [id, sequence] : sequences_) count_bursts_once(*sequence);
  for (const Undecided& closed : undecided_) {
    IntervalRecord record = pass_correction(closed.sums, closed.bursts, closed.sums.own_passes / closed.bursts);
    record.a = closed.first;
    record.b = closed.last;
    sink_.on_correction(record);
  }
  undecided_.clear();
}

// Until now each of its tokens was billed a pass: from now on each burst so far was one.
void DecodeLedger::count_bursts_once(Sequence& sequence) {
  double waiting = 0;
  for (const Pending& pending : pending_) {
    if (pending.sequence == &sequence) waiting += pending.passes;
  }
  const double billed = sequence.sums.own_passes + waiting;
  const double bursts = sequence.bursts + (sequence.burst.tokens > 0 ? 1 : 0);
  if (billed > bursts && bursts > 0) {
    const double share = bursts / billed;
    for (Pending& pending : pending_) {
      if (pending.sequence == &sequence) pending.passes *= share;
    }
    if (sequence.sums.own_passes > 0) correct_passes(sequence, share * sequence.sums.own_passes, 1 / share);
  }
  // The last burst may still grow; its pass is counted.
  sequence.burst.tokens = 0;
  sequence.burst_from = sequence.last;
  sequence.burst_passes = 0;
}

// What frames that tell no count yielded is known when their stream has ended.
void DecodeLedger::add_total_to_evidence(const Sequence& sequence) {
  const bool told = sequence.estimated < sequence.counted / 2;
  if (options_.speculates || told || !sequence.whole || !sequence.known.tokens || sequence.lost_ever > 0) return;
  evidence_.add_total(sequence.evidence, static_cast<double>(*sequence.known.tokens),
                      static_cast<double>(sequence.frames));
  verdict_ = evidence_.verdict();
}

void DecodeLedger::keep_undecided(const Sequence& sequence) {
  if (options_.speculates) {
    undecided_.clear();
    return;
  }
  if (sequence.bursts <= 0 || sequence.bursts >= sequence.sums.own_passes) return;
  if (undecided_.size() >= kUndecidedMax) undecided_.erase(undecided_.begin());
  undecided_.push_back(Undecided{sequence.first, sequence.last, sequence.bursts, sequence.sums});
}

}  // namespace rooflined
