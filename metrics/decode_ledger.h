// Turns token events of one engine into seconds, passes and bytes: the algorithm of ledger.md, exactly.
//
//   in:   begin / tokens / end (with a late total) / late prompt, per sequence, in about the order of line time
//   out:  settled interval records, corrections, first tokens, closed sequences, ways out of decode
//
// Inputs wait in a reorder buffer of 250 ms (the hole age of TCP plus margin), so that what is behind it sees them in
// the order of time. An interval settles when no sequence in decode can change the batch below it any more. There is no
// clock: advance_to() moves time. Bounded by Options; runs on the capture thread only.

#pragma once

#include "metrics/base/time.h"
#include "metrics/decode_sequence.h"
#include "metrics/exchange.h"
#include "metrics/geometry.h"
#include "metrics/interval_record.h"
#include "metrics/pace_history.h"
#include "metrics/speculation_evidence.h"
#include "metrics/step_integral.h"

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace rooflined {

// Ways out of decode that are not the end of the sequence; each is counted.
enum class DecodeExit : std::uint8_t {
  kOvertaken,  // another sequence had more than four token events since its last one
  kLoss,       // its flow lost bytes, or the kernel dropped packets
  kSilence,    // 30 s without a token event
  kClient,     // its client's receive window closed
};

struct ClosedSequence {
  double output_tokens = 0;
  double sequence_seconds = 0;
  Outcome outcome = Outcome::kOk;
};

class LedgerSink {
 public:
  virtual ~LedgerSink() = default;
  // The first token event of a sequence: output tokens only.
  virtual void on_first_tokens(LineTime at, double tokens) = 0;
  virtual void on_interval(const IntervalRecord& record) = 0;
  // Differences, to be spread over (a, b]. `output_tokens` differs from record.tokens only where a sequence had no
  // decode.
  virtual void on_correction(const IntervalRecord& record) = 0;
  // How `tokens` output tokens were known, for the tokens of (first, last].
  virtual void on_source(TokenSource source, double tokens, LineTime first, LineTime last) = 0;
  virtual void on_closed(const ClosedSequence& closed) = 0;
  virtual void on_exit(DecodeExit exit) = 0;
  // An input came behind the reorder buffer and was billed at its edge.
  virtual void on_late_input() = 0;
};

class DecodeLedger {
 public:
  struct Options {
    double replicas = 1;      // R: decode batches in flight behind the port
    bool speculates = false;  // a burst is one pass; found out where it is not said
    Duration reorder_age = std::chrono::milliseconds(250);
    Duration stall_max = std::chrono::seconds(2);  // how long an open sequence can hold back settling
    Duration silence_max = std::chrono::seconds(30);
    std::size_t inputs_max = 1 << 18;  // waiting in the reorder buffer
  };

  // Requires: `sink` outlives the ledger.
  DecodeLedger(const Options& options, LedgerSink& sink);
  DecodeLedger(const DecodeLedger&) = delete;
  DecodeLedger& operator=(const DecodeLedger&) = delete;

  // Bytes are billed from here on; nullptr: none are.
  void set_geometry(std::shared_ptr<const Geometry> geometry) {
    geometry_ = std::move(geometry);
    weights_batch_ = 0;
  }
  // The model that drafts: its reads are billed for each token that it proposes.
  void set_draft_geometry(std::shared_ptr<const Geometry> geometry) { draft_geometry_ = std::move(geometry); }
  bool counts_drafts() const { return draft_geometry_ != nullptr; }
  // Said, or found out: a burst is one pass.
  bool speculates() const { return options_.speculates; }

  // A request waits for its first token (prefill) from `at` until its first token event or end. Where it is not
  // streamed nobody sees its first token: its wait is no prefill to be told from decode.
  void request(ExchangeId exchange, LineTime at, bool streamed = true);
  void request_over(ExchangeId exchange, LineTime at);

  // A sequence appears. `whole` is false where its first token was not seen (joined late).
  void begin(SequenceId sequence, ExchangeId exchange, LineTime at, double prompt_tokens, bool whole);
  void tokens(SequenceId sequence, LineTime at, std::uint32_t count, std::uint32_t frames, TokenSource source);
  void late_prompt(SequenceId sequence, LineTime at, double prompt_tokens);
  // Bytes of its flow are missing, which bore about so many tokens.
  void loss(SequenceId sequence, LineTime at, double tokens);
  // The client's receive window closed, or opened again.
  void client_window(SequenceId sequence, LineTime at, bool closed);
  // The kernel dropped packets: every sequence may have lost some.
  void loss_everywhere(LineTime at);
  // `known` is what is known of the sequence at its end; its choice is not looked at.
  void end(SequenceId sequence, LineTime at, Outcome outcome, const SequenceTotal& known);

  // Requires: `now` never goes back.
  void advance_to(LineTime now);
  // Settles everything: the end of a capture.
  void finish();

  // Everything up to here is final.
  LineTime settled_until() const { return settled_until_; }
  std::size_t sequences_in_decode() const { return in_decode_.size(); }

 private:
  enum class Kind : std::uint8_t {
    kRequest,
    kRequestOver,
    kBegin,
    kTokens,
    kPrompt,
    kLoss,
    kWindow,
    kLossEverywhere,
    kEnd
  };

  struct Input {
    LineTime at;
    Kind kind = Kind::kTokens;
    TokenSource source = TokenSource::kEstimated;
    Outcome outcome = Outcome::kOk;
    bool flag = true;  // kRequest: streamed, kBegin: whole, kWindow: closed
    std::uint32_t frames = 1;
    std::uint64_t id = 0;        // sequence, or exchange
    std::uint64_t exchange = 0;  // of kBegin
    double value = 0;            // tokens, lost tokens, prompt
    std::size_t known = 0;       // of kEnd: key of what is known
  };

  using Sequence = DecodeSequence;

  // How an interval came to be known, and so what it is billed.
  enum class Work : std::uint8_t {
    kSeen,
    kHidden,         // laid back: `a` is the earliest that it can have begun
    kClientLimited,  // sent into a closed window: laid back as well, without passes of its own
  };

  struct Pending {
    Sequence* sequence;
    Work work;
    LineTime a;
    LineTime b;
    double tokens;
    double passes;  // p
    std::uint32_t frames;
    TokenSource source;
  };

  struct Prefill {
    LineTime at;
    bool streamed;
  };

  // A sequence that closed before it was decided whether its engine speculates.
  struct Undecided {
    LineTime first;
    LineTime last;
    double bursts;
    DecodeSequence::Sums sums;
  };

  void enqueue(const Input& input);
  void release_until(LineTime edge);
  void apply(const Input& input);
  void apply_begin(const Input& input);
  void apply_tokens(const Input& input);
  void apply_loss(Sequence& sequence, double tokens);
  static bool total_fits(const Sequence& sequence);
  static double lost_before(Sequence& sequence, const TokenGroup& event);
  void apply_prompt(Sequence& sequence, double prompt_tokens);
  void apply_end(const Input& input);
  void prefill_over(ExchangeId exchange, LineTime at);
  void apply_window(Sequence& sequence, bool closed);
  void step(LineTime at, std::int64_t delta);
  void enter(Sequence& sequence, LineTime at);
  void leave(Sequence& sequence, DecodeExit exit, Duration resume_interval);
  void leave_quietly(Sequence& sequence);
  void overtake_others(const Sequence& sequence);
  void start(Sequence& sequence, const TokenGroup& event);
  void come_back(Sequence& sequence, const TokenGroup& event);
  static void note_event(Sequence& sequence, LineTime at);
  static void count(Sequence& sequence, const TokenGroup& event);
  void add_event(Sequence& sequence, const TokenGroup& event);
  void add_to_burst(Sequence& sequence, const TokenGroup& event);
  void split_head(Sequence& sequence);
  void end_burst(Sequence& sequence);
  void end_bursts(Sequence& sequence);
  void found_speculating();
  void count_bursts_once(Sequence& sequence);
  void add_total_to_evidence(const Sequence& sequence);
  void keep_undecided(const Sequence& sequence);
  void add_interval(Sequence& sequence, LineTime a, const TokenGroup& event, double passes);
  void add_pending(const Pending& pending);
  void hide(Sequence& sequence, LineTime earliest, LineTime end, double tokens, double passes, TokenSource source);
  void hide_unseen(Sequence& sequence, LineTime at);
  void hide_first_tokens(Sequence& sequence);
  void take_unseen_at_finish(Sequence& sequence);
  LineTime final_until(LineTime edge) const;
  void settle(LineTime edge);
  void bill(const Pending& pending);
  void bill_hidden(const Pending& pending);
  IntervalRecord record_of(const Pending& pending, LineTime a) const;
  void book(Sequence& sequence, const IntervalRecord& record, double passes);
  const WeightBytes& weight_bytes(double batch);
  DraftReads draft_reads(double drafts, double batch, double context) const;
  void bill_drafts(Sequence& sequence, IntervalRecord& record, double passes);
  static double verified_of(const Pending& pending);
  void bill_unseen_drafts(const Pending& pending, IntervalRecord& record, double alone, double beside);
  void correct_drafts(Sequence& sequence);
  void close(Sequence& sequence);
  void correct_total(Sequence& sequence, double missing);
  void correct_accepted(Sequence& sequence);
  IntervalRecord pass_correction(const DecodeSequence::Sums& sums, double passes, double verified) const;
  void correct_passes(Sequence& sequence, double passes, double verified);
  void forget_old_steps();
  Sequence* find(SequenceId id);

  Options options_;
  LedgerSink& sink_;
  std::shared_ptr<const Geometry> geometry_;
  std::shared_ptr<const Geometry> draft_geometry_;
  // W at the batch that was asked for last: most often it is asked for again.
  double weights_batch_ = 0;
  WeightBytes weights_;
  // Of the sequences that told: drafts proposed, and passes.
  double drafts_told_ = 0;
  double drafted_passes_ = 0;

  std::deque<Input> inputs_;                              // ascending in time, ties in order of arrival
  std::unordered_map<std::size_t, SequenceTotal> known_;  // of the ends among them
  std::size_t known_next_ = 0;
  LineTime edge_ = LineTime::min();
  LineTime settled_until_ = LineTime::min();

  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::list<Sequence*> in_decode_;  // by last token event, oldest first
  std::unordered_map<ExchangeId, Prefill> prefills_;
  std::deque<Pending> pending_;                          // by b
  StepIntegral membership_{StepIntegral::Kind::kValue};  // n(t)
  StepIntegral everyone_{StepIntegral::Kind::kValue};    // n(t) and the hidden work that is laid back
  StepIntegral anyone_{StepIntegral::Kind::kIndicator};  // the same, as whether there is any
  StepIntegral prefilling_{StepIntegral::Kind::kIndicator};
  std::size_t steps_kept_ = 0;
  PaceHistory pace_;

  SpeculationEvidence evidence_;
  SpeculationEvidence::Verdict verdict_ = SpeculationEvidence::Verdict::kUndecided;
  std::vector<Undecided> undecided_;
  LineTime first_tokens_last_ = LineTime::min();  // of any sequence: a prefill ended
};

}  // namespace rooflined
