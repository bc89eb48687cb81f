// One sequence (a choice of an exchange) as the decode ledger keeps it. Plain data; ledger.md defines the terms.

#pragma once

#include "metrics/base/time.h"
#include "metrics/burst_splitter.h"
#include "metrics/exchange.h"
#include "metrics/geometry.h"
#include "metrics/speculation_evidence.h"

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

namespace rooflined {

using SequenceId = std::uint64_t;

// Tokens that came at a time: a token event, or a burst of them.
struct TokenGroup {
  LineTime at;
  double tokens = 0;
  std::uint32_t frames = 1;
  TokenSource source = TokenSource::kEstimated;

  // Its tokens were guessed from its text: what they are to its time tells nothing of the engine.
  bool guessed() const { return source != TokenSource::kExactLive && tokens != frames; }
};

// What the model that drafts read.
struct DraftReads {
  double drafts = 0;
  WeightBytes weights;
  double kv_bytes = 0;
};

struct DecodeSequence {
  // Overtaken: another sequence had more than this many token events (bursts of one pass taken for one).
  static constexpr std::size_t kOvertakenAfter = 4;

  // What it was billed: scaled when its total comes late.
  struct Sums {
    double tokens = 0;
    double own_passes = 0;  // Σ p
    double passes = 0;      // Σ p / B
    double sequence_seconds = 0;
    double busy_seconds = 0;
    double overlap_seconds = 0;
    double context = 0;
    WeightBytes weights;
    double kv_bytes = 0;
    double billed_tokens = 0;  // with bytes
  };

  SequenceId id = 0;
  ExchangeId exchange = 0;
  bool whole = true;  // its first token was seen
  bool in_decode = false;
  bool closed = false;
  bool started = false;         // had its first token event
  bool overtaken = false;       // it is out of decode because others went on
  bool client_limited = false;  // it is out of decode because its client does not read
  bool window_closed = false;
  double prompt_tokens = 0;
  double first_tokens = 0;
  double counted = 0;    // output tokens, pending intervals included
  double estimated = 0;  // those of them that no counter confirmed yet
  double settled = 0;    // output tokens before the next interval to settle
  bool lossy = false;    // its flow lost bytes since its last event
  double lost = 0;       // tokens that they bore, about
  double lost_ever = 0;  // the same, of all losses
  LineTime requested;    // the last byte of its request, where known
  LineTime first;
  LineTime last;
  double batch_last = 0;  // B of its last settled interval, 0: none
  Duration interval_last{0};
  Duration resume_interval{0};  // billed when it comes back
  std::uint32_t pending = 0;
  std::array<LineTime, kOvertakenAfter + 1> recent;  // times of its last token events, a ring
  std::uint64_t events = 0;
  std::uint64_t frames = 0;  // of those events
  Sums sums;
  DraftReads drafts;  // beside the sums: billed so far
  Outcome outcome = Outcome::kOk;
  SequenceTotal known;                         // at its end
  std::list<DecodeSequence*>::iterator place;  // among those in decode

  // Its bursts, whether or not the engine is known to speculate.
  BurstSplitter splitter;
  std::vector<TokenGroup> head;  // its first events, until the splitter knows their bursts
  LineTime burst_from;           // where the burst's interval begins: the end of the one before
  TokenGroup burst;              // the last one, which may still grow; no tokens: none
  bool burst_guessed = false;
  double burst_passes = 1;  // 0: it began before the engine was found to speculate, and was counted then
  double bursts = 0;        // that ended while it was not known whether the engine speculates
  SpeculationEvidence::Stream evidence;
};

}  // namespace rooflined
