// Exchange events into the ledger, and the ledger's records into counters. The view of it is in engine_snapshot.cc.

#include "metrics/engine_books.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace rooflined {
namespace {

// Prompts in flight are estimated anew with each of the first totals: the ratio is not yet that of the model.
constexpr std::uint64_t kFirstPrompts = 4;
// n of a request, or prompts in a list: far above what engines accept, and a bound on what a response can make us keep.
constexpr std::size_t kSequencesPerExchangeMax = 256;

// At least what decode_rate() looks back.
Duration longest(const std::vector<WindowSpan>& windows) {
  Duration span = std::chrono::seconds(10);
  for (const WindowSpan& window : windows) span = std::max(span, window.span);
  return span;
}

}  // namespace

EngineBooks::EngineBooks(const Options& options, LineTime began, RecordObserver* observer)
    : options_(options),
      began_(began),
      observer_(observer),
      ledger_(options.ledger, *this),
      window_(longest(options.windows)) {}

void EngineBooks::set_geometry(std::shared_ptr<const Geometry> geometry) {
  geometry_ = geometry;
  ledger_.set_geometry(std::move(geometry));
}

double EngineBooks::prompt_estimate(const Exchange& exchange) const {
  if (exchange.prompt_tokens) return static_cast<double>(*exchange.prompt_tokens) / exchange.prompts;
  return prompt_ratio_.tokens(static_cast<double>(exchange.prompt_characters)) / exchange.prompts;
}

void EngineBooks::begin(const ExchangeBegin& begin) {
  Exchange& exchange = exchanges_[begin.exchange];
  exchange.began = begin.at;
  exchange.joined_late = begin.joined_late;
  exchange.whole = !begin.joined_late;
  exchange.prompt_characters = begin.prompt_characters;
  exchange.prompt_tokens = begin.prompt_tokens;
  exchange.prompts = begin.prompts;
  if (begin.prompt_tokens) prompt_tokens_.add(static_cast<double>(*begin.prompt_tokens));
  if (!begin.joined_late) ledger_.request(begin.exchange, begin.at, begin.streamed);
}

EngineBooks::Sequence* EngineBooks::sequence_of(ExchangeId id, Exchange& exchange, std::uint32_t choice, LineTime at) {
  for (Sequence& sequence : exchange.sequences) {
    if (sequence.choice == choice) return &sequence;
  }
  if (exchange.sequences.size() >= kSequencesPerExchangeMax) {
    ++decode_exits_["limit"];
    return nullptr;
  }
  exchange.sequences.push_back(Sequence{.choice = choice, .id = sequence_next_++});
  Sequence& sequence = exchange.sequences.back();
  ledger_.begin(sequence.id, id, at, prompt_estimate(exchange), exchange.whole);
  return &sequence;
}

// What the event adds to the sequence's tokens: as counted on the wire, or what its text says where frames carry
// several.
std::uint32_t EngineBooks::tokens_of(Sequence& sequence, const TokenEvent& event) const {
  sequence.frames += event.frames;
  sequence.characters += event.characters;
  double tokens = event.tokens;
  if (event.source == TokenSource::kExactLive) {
    sequence.exact_live = true;
  } else if (!sequence.exact_live && answer_estimate_.by_text(sequence.frames, sequence.characters)) {
    const double added = std::round(answer_estimate_.tokens_of_text(sequence.characters) - sequence.counted);
    tokens = std::clamp(added, 1.0, std::max(1.0, static_cast<double>(event.characters)));
  }
  sequence.counted += tokens;
  return static_cast<std::uint32_t>(tokens);
}

void EngineBooks::tokens(const TokenEvent& event) {
  const auto found = exchanges_.find(event.exchange);
  if (found == exchanges_.end()) return;
  Exchange& exchange = found->second;
  if (!exchange.first_token_seen) {
    exchange.first_token_seen = true;
    if (exchange.whole) {
      const Duration waited = event.at - exchange.began;
      time_to_first_token_.observe(to_seconds(waited));
      if (observer_ != nullptr) observer_->on_time_to_first_token(event.at, waited);
    }
  }
  if (Sequence* sequence = sequence_of(event.exchange, exchange, event.choice, event.at)) {
    ledger_.tokens(sequence->id, event.at, tokens_of(*sequence, event), event.frames, event.source);
  }
}

void EngineBooks::prompt_tokens(ExchangeId id, std::uint64_t tokens, LineTime at) {
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  Exchange& exchange = found->second;
  const auto exact = static_cast<double>(tokens);
  prompt_tokens_.add(exact - static_cast<double>(exchange.prompt_tokens.value_or(0)));
  exchange.prompt_tokens = tokens;
  for (const Sequence& sequence : exchange.sequences) ledger_.late_prompt(sequence.id, at, prompt_estimate(exchange));
  learn_prompt(exchange, exact, at);
}

void EngineBooks::set_learned_tokens(const LearnedTokens& learned) {
  if (prompt_ratio_.learned() == 0) prompt_ratio_ = CharacterRatio(learned.prompts);
  if (answer_estimate_.learned() == 0) answer_estimate_ = AnswerEstimate(learned.answers);
}

void EngineBooks::learn_prompt(const Exchange& exchange, double tokens, LineTime at) {
  if (exchange.prompt_characters == 0 || tokens <= 0) return;
  prompt_ratio_.learn(static_cast<double>(exchange.prompt_characters), tokens);
  if (prompt_ratio_.learned() > kFirstPrompts) return;
  for (const auto& [id, other] : exchanges_) {
    if (other.prompt_tokens) continue;
    for (const Sequence& sequence : other.sequences) ledger_.late_prompt(sequence.id, at, prompt_estimate(other));
  }
}

// How many sequences decode is in doubt for a while.
void EngineBooks::lose(LineTime at) {
  constexpr Duration kInDoubt = std::chrono::seconds(1);
  window_.add_loss(at);
  slices_.spoil(at - kInDoubt, at + kInDoubt);
}

void EngineBooks::note_client(Exchange& exchange, bool stopped, LineTime at) {
  if (exchange.client_stopped == stopped) return;
  exchange.client_stopped = stopped;
  stopped ? slices_.client_stops(at) : slices_.client_reads(at);
}

void EngineBooks::loss(ExchangeId id, double tokens, LineTime at) {
  lose(at);
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  Exchange& exchange = found->second;
  exchange.lossy = true;
  // A sequence whose first tokens were in the gap is not whole.
  if (exchange.sequences.empty()) exchange.whole = false;
  for (const Sequence& sequence : exchange.sequences) {
    ledger_.loss(sequence.id, at, tokens / static_cast<double>(exchange.sequences.size()));
  }
}

void EngineBooks::client_window(ExchangeId id, bool closed, LineTime at) {
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  note_client(found->second, closed, at);
  for (const Sequence& sequence : found->second.sequences) ledger_.client_window(sequence.id, at, closed);
}

void EngineBooks::loss_everywhere(LineTime at) {
  lose(at);
  ledger_.loss_everywhere(at);
}

void EngineBooks::end(const ExchangeEnd& end) {
  const auto found = exchanges_.find(end.exchange);
  if (found == exchanges_.end()) return;
  Exchange& exchange = found->second;
  note_client(exchange, false, end.at);
  for (const SequenceTotal& total : end.sequences) sequence_of(end.exchange, exchange, total.choice, end.at);
  for (const Sequence& sequence : exchange.sequences) {
    const auto total = std::find_if(end.sequences.begin(), end.sequences.end(),
                                    [&](const SequenceTotal& other) { return other.choice == sequence.choice; });
    const SequenceTotal known = total != end.sequences.end() ? *total : SequenceTotal();
    if (known.tokens && !exchange.joined_late && !exchange.lossy) {
      answer_estimate_.learn(sequence.frames, sequence.characters, static_cast<double>(*known.tokens));
    }
    ledger_.end(sequence.id, end.at, end.outcome, known);
  }
  ledger_.request_over(end.exchange, end.at);
  if (!exchange.joined_late) {
    ++requests_[static_cast<std::size_t>(end.outcome)];
    request_duration_.observe(to_seconds(end.at - exchange.began));
    if (end.outcome == Outcome::kOk) {
      ++finished_.requests;
      finished_.prompt_tokens += static_cast<double>(exchange.prompt_tokens.value_or(0));
    }
  }
  exchanges_.erase(found);
}

void EngineBooks::forget(ExchangeId id, LineTime at) {
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  note_client(found->second, false, at);
  ledger_.request_over(id, at);
  prompt_tokens_.add(-static_cast<double>(found->second.prompt_tokens.value_or(0)));
  exchanges_.erase(found);
}

void EngineBooks::on_first_tokens(LineTime at, double tokens) {
  output_tokens_.add(tokens);
  window_.add_first_tokens(at, tokens);
  if (observer_ != nullptr) observer_->on_first_tokens(at, tokens);
}

void EngineBooks::count(const IntervalRecord& record) {
  output_tokens_.add(record.tokens);
  decode_tokens_.add(record.tokens);
  passes_.add(record.passes);
  sequence_seconds_.add(record.sequence_seconds);
  busy_seconds_.add(record.busy_seconds);
  overlap_seconds_.add(record.overlap_seconds);
  bytes_dense_.add(record.weights.dense);
  bytes_experts_.add(record.weights.experts);
  bytes_kv_.add(record.kv_bytes);
  context_sum_ += record.context_sum;
  if (record.bytes_known) billed_busy_seconds_ += record.busy_seconds;
}

void EngineBooks::on_interval(const IntervalRecord& record) {
  count(record);
  window_.add_interval(record);
  slices_.add(record);
  inter_token_latency_.observe(record.sequence_seconds / record.tokens,
                               static_cast<std::uint64_t>(std::llround(record.tokens)));
  inter_event_latency_.observe(record.sequence_seconds);
  if (observer_ != nullptr) observer_->on_interval(record);
}

void EngineBooks::on_correction(const IntervalRecord& record) {
  count(record);
  window_.add_correction(record);
  if (observer_ != nullptr) observer_->on_correction(record);
}

void EngineBooks::on_source(TokenSource source, double tokens, LineTime first, LineTime last) {
  tokens_by_source_[static_cast<std::size_t>(source)].add(tokens);
  if (source == TokenSource::kEstimated) window_.add_estimated(first, last, tokens);
}

void EngineBooks::on_closed(const ClosedSequence& closed) {
  if (closed.outcome != Outcome::kOk) return;
  finished_.output_tokens += closed.output_tokens;
  finished_.sequence_seconds += closed.sequence_seconds;
}

void EngineBooks::on_exit(DecodeExit exit) {
  switch (exit) {
    case DecodeExit::kOvertaken:
      ++decode_exits_["overtaken"];
      return;
    case DecodeExit::kLoss:
      ++decode_exits_["loss"];
      return;
    case DecodeExit::kSilence:
      ++decode_exits_["silence"];
      return;
    case DecodeExit::kClient:
      ++decode_exits_["client"];
      return;
  }
}

void EngineBooks::on_late_input() {
  ++decode_exits_["late"];
}

}  // namespace rooflined
