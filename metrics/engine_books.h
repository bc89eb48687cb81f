// The books of one target: from exchange events to counters, histograms, windows and what a scrape shows of it.
//
//   in:   the events of metrics/exchange.h for the exchanges of one engine, and the passing of line time
//   out:  a TargetSnapshot; every settled record also goes to an observer (trace file, replay)
//
// Bounded: sequences per exchange here, connections and exchanges by the tap. Runs on the capture thread only.

#pragma once

#include "metrics/decode_ledger.h"
#include "metrics/deploy_slices.h"
#include "metrics/exchange.h"
#include "metrics/fixed_histogram.h"
#include "metrics/monotone_counter.h"
#include "metrics/rolling_window.h"
#include "metrics/snapshot.h"
#include "metrics/token_estimate.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace rooflined {

struct WindowSpan {
  std::string name;  // as written in the settings: "1m"
  Duration span{0};
};

// Sees what the books see. Called on the capture thread.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  virtual void on_first_tokens(LineTime at, double tokens) = 0;
  virtual void on_interval(const IntervalRecord& record) = 0;
  virtual void on_correction(const IntervalRecord& record) = 0;
  // A request's first token came after `waited`.
  virtual void on_time_to_first_token(LineTime at, Duration waited) = 0;
};

class EngineBooks final : private LedgerSink {
 public:
  struct Options {
    DecodeLedger::Options ledger;
    std::vector<WindowSpan> windows = {{"1m", std::chrono::minutes(1)}, {"5m", std::chrono::minutes(5)}};
    std::optional<WindowSpan> live;  // the live page's own
  };

  // What requests that ended well had: servers count these, too.
  struct Finished {
    std::uint64_t requests = 0;
    double output_tokens = 0;
    double prompt_tokens = 0;
    double sequence_seconds = 0;
  };

  // Counters with debts subtracted: what a finished replay prints.
  struct Settled {
    double output_tokens = 0;
    double prompt_tokens = 0;
    double decode_tokens = 0;
    double passes = 0;
    double sequence_seconds = 0;
    double busy_seconds = 0;
    double bytes_dense = 0;
    double bytes_experts = 0;
    double bytes_kv = 0;
    double context_sum = 0;
    bool bytes_known = false;
    double billed_busy_seconds = 0;
    std::array<double, 3> tokens_by_source{};
  };

  // Requires: `began` is the line time at which the target appeared; `observer` (may be null) outlives the books.
  EngineBooks(const Options& options, LineTime began, RecordObserver* observer);

  void begin(const ExchangeBegin& begin);
  void tokens(const TokenEvent& event);
  void prompt_tokens(ExchangeId exchange, std::uint64_t tokens, LineTime at);
  // `tokens`: how many the lost bytes bore, as far as can be told.
  void loss(ExchangeId exchange, double tokens, LineTime at);
  void client_window(ExchangeId exchange, bool closed, LineTime at);
  void end(const ExchangeEnd& end);
  // It was none of this engine's: nothing is left of it. Requires: it has borne no token here.
  void forget(ExchangeId exchange, LineTime at);
  // The kernel dropped packets.
  void loss_everywhere(LineTime at);

  void advance_to(LineTime now) { ledger_.advance_to(now); }
  // Settles everything: the end of a capture.
  void finish() { ledger_.finish(); }

  void set_geometry(std::shared_ptr<const Geometry> geometry);
  // Of the model that drafts for this one.
  void set_draft_geometry(std::shared_ptr<const Geometry> geometry) { ledger_.set_draft_geometry(std::move(geometry)); }
  const Geometry* geometry() const { return geometry_.get(); }
  // How long a token's text is here. What was learned earlier is taken where nothing was learned yet.
  LearnedTokens learned_tokens() const { return {prompt_ratio_.state(), answer_estimate_.state()}; }
  void set_learned_tokens(const LearnedTokens& learned);
  double replicas() const { return options_.ledger.replicas; }
  std::size_t exchanges_in_flight() const { return exchanges_.size(); }

  // Counters, histograms, gauges, windows and the caveats that follow from them. Names and the server are the caller's.
  TargetSnapshot snapshot(std::optional<BytesPerSecond> bandwidth) const;
  // Decode bytes per second over the last `span` that is settled, at most ten seconds; absent while the geometry is
  // unknown or so much has not passed.
  std::optional<BytesPerSecond> decode_rate(Duration span) const;
  const Finished& finished() const { return finished_; }
  // For what a deploy did. Everything up to settled_until() is in them.
  DeploySlices& slices() { return slices_; }
  LineTime settled_until() const { return ledger_.settled_until(); }
  Settled settled() const;

 private:
  struct Sequence {
    std::uint32_t choice;
    SequenceId id;
    double frames = 0;
    double characters = 0;
    double counted = 0;       // tokens that the ledger was told of
    bool exact_live = false;  // a counter on its frames said how many
  };
  struct Exchange {
    LineTime began;
    bool joined_late = false;
    bool lossy = false;
    bool whole = true;  // its first tokens were not lost
    bool first_token_seen = false;
    bool client_stopped = false;  // its receive window is closed
    std::uint64_t prompt_characters = 0;
    std::optional<std::uint64_t> prompt_tokens;  // as the characters, of all its prompts
    double prompts = 1;
    std::vector<Sequence> sequences;
  };

  // nullptr: its exchange has too many.
  Sequence* sequence_of(ExchangeId id, Exchange& exchange, std::uint32_t choice, LineTime at);
  double prompt_estimate(const Exchange& exchange) const;
  std::uint32_t tokens_of(Sequence& sequence, const TokenEvent& event) const;
  void learn_prompt(const Exchange& exchange, double tokens, LineTime at);
  void lose(LineTime at);
  void note_client(Exchange& exchange, bool stopped, LineTime at);
  WindowSnapshot window_snapshot(const WindowSpan& span, std::optional<BytesPerSecond> bandwidth) const;
  std::vector<std::string> caveats() const;

  void on_first_tokens(LineTime at, double tokens) override;
  void on_interval(const IntervalRecord& record) override;
  void on_correction(const IntervalRecord& record) override;
  void on_source(TokenSource source, double tokens, LineTime first, LineTime last) override;
  void on_closed(const ClosedSequence& closed) override;
  void on_exit(DecodeExit exit) override;
  void on_late_input() override;
  void count(const IntervalRecord& record);

  Options options_;
  LineTime began_;
  RecordObserver* observer_;
  std::shared_ptr<const Geometry> geometry_;
  DecodeLedger ledger_;
  RollingWindow window_;
  DeploySlices slices_;

  std::unordered_map<ExchangeId, Exchange> exchanges_;
  SequenceId sequence_next_ = 1;
  CharacterRatio prompt_ratio_;
  AnswerEstimate answer_estimate_;

  MonotoneCounter output_tokens_;
  MonotoneCounter prompt_tokens_;
  MonotoneCounter decode_tokens_;
  MonotoneCounter passes_;
  MonotoneCounter sequence_seconds_;
  MonotoneCounter busy_seconds_;
  MonotoneCounter overlap_seconds_;
  MonotoneCounter bytes_dense_;
  MonotoneCounter bytes_experts_;
  MonotoneCounter bytes_kv_;
  std::array<MonotoneCounter, 3> tokens_by_source_;
  double context_sum_ = 0;
  double billed_busy_seconds_ = 0;
  std::array<std::uint64_t, 3> requests_{};
  std::map<std::string, std::uint64_t> decode_exits_;
  Finished finished_;

  FixedHistogram inter_token_latency_{kTokenLatencyBounds};
  FixedHistogram inter_event_latency_{kTokenLatencyBounds};
  FixedHistogram time_to_first_token_{kRequestLatencyBounds};
  FixedHistogram request_duration_{kRequestLatencyBounds};
};

}  // namespace rooflined
