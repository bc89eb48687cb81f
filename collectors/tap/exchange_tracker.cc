#include "collectors/tap/exchange_tracker.h"

#include <algorithm>

namespace rooflined::tap {
namespace {

ServerFamily family_of_headers(const ResponseHead& head) {
  if (head.server == "llama.cpp") return ServerFamily::kLlamaCpp;
  if (head.server.starts_with("ConcedoLlama")) return ServerFamily::kKoboldCpp;
  if (head.compute_type_header) return ServerFamily::kTgi;
  return ServerFamily::kUnknown;
}

}  // namespace

Exchange::Exchange(TapContext& context, const Endpoint& server, const Dialect* dialect)
    : context_(context),
      server_(server),
      dialect_(dialect),
      orphan_(dialect == nullptr),
      body_(context.limits, context.counters, *this) {
  // Until the body was read. A body too big to be read is most often a long conversation, and those are streamed.
  request_facts_.streamed = true;
}

LineTime Exchange::advance(LineTime at) {
  now_ = std::max(now_, at);
  return now_;
}

void Exchange::take_request(std::string_view bytes) {
  if (!request_readable_) return;
  if (!request_.append(bytes, context_.limits.request_body_bytes_max)) {
    context_.counters.count(ParseError::kRequestTooLong);
    request_unreadable();
  }
}

void Exchange::request_unreadable() {
  request_readable_ = false;
  request_.release();
}

void Exchange::request_complete(LineTime at) {
  request_complete_ = true;
  completed_at_ = at;
  if (request_readable_ && dialect_ != nullptr) {
    const auto facts = context_.reader.read_request(request_.view(), TextBuffer::kPadding, *dialect_);
    if (facts) {
      request_facts_ = *facts;
    } else {
      context_.counters.count(ParseError::kJson);
    }
  }
  request_.release();
}

void Exchange::begin(LineTime at) {
  if (begun_) return;
  begun_ = true;
  id_ = ++context_.last_exchange;
  ++context_.counters.exchanges;
  ++context_.counters.exchanges_in_flight;
  ExchangeBegin begin;
  begin.exchange = id_;
  begin.server = server_;
  begin.at = advance(at);
  begin.streamed = request_facts_.streamed;
  begin.joined_late = orphan_;
  begin.prompt_characters = request_facts_.prompt_characters;
  begin.prompt_tokens = request_facts_.prompt_tokens;
  context_.sink.on_begin(begin);
}

void Exchange::response_head(const ResponseHead& head, bool until_close, LineTime at) {
  if (!orphan_) begin(at);
  advance(at);
  until_close_ = until_close;
  family_ = family_of_headers(head);
  if (head.status >= 400) error_ = true;
  const bool stream = head.media_type == MediaType::kEventStream || head.media_type == MediaType::kNdjson;
  // Whatever an unknown request asked for: only a stream can be told from anything else.
  body_skipped_ = head.status >= 400 || (orphan_ && !stream);
  if (!body_skipped_) body_.start(head.media_type, head.fields.coding, request_facts_.streamed);
}

void Exchange::response_body(std::string_view bytes, LineTime at) {
  if (ended_ || body_skipped_) return;
  advance(at);
  body_.feed(bytes);
  // Not at the end itself: that comes out of the middle of feed().
  if (ended_) body_.release();
}

void Exchange::response_missing(LineTime at) {
  if (ended_) return;
  advance(at);
  body_.gap();
  if (begun_ && !ended_) {
    flush(at);
    context_.sink.on_loss(id_, now_);
  }
}

void Exchange::client_window(bool closed, LineTime at) {
  if (begun_ && !ended_) context_.sink.on_client_window(id_, closed, advance(at));
}

void Exchange::response_end(bool complete, LineTime at) {
  advance(at);
  if (!ended_ && !body_skipped_) {
    body_.finish();
    if (complete && !ended_ && body_.is_document()) apply_document();
  }
  if (!ended_) end(outcome(false, complete));
  body_.release();
}

void Exchange::on_frame(const Frame& frame) {
  if (ended_) return;
  if (frame.text == "[DONE]") {
    if (begun_) end(outcome(true, true));
    return;
  }
  error_ = error_ || frame.error;
  const Reading reading = context_.reader.read_frame(frame.text, frame.readable_after, dialect_);
  if (context_.reader.cleaned()) ++context_.counters.frames_cleaned;
  if (reading == Reading::kNoJson && !frame.error) context_.counters.count(ParseError::kJson);
  if (reading == Reading::kUnknown && !frame.error) ++context_.counters.frames_unknown;
  if (reading == Reading::kOwn || reading == Reading::kNeutral) apply_frame(reading == Reading::kOwn);
  // An event stream on a generation route whose first word is an error: a server of that dialect all the same.
  if (error_ && begun_ && !ended_ && !recognised_ && dialect_ != nullptr) recognise(FrameFacts());
}

void Exchange::apply_frame(bool own) {
  const FrameFacts& facts = context_.reader.facts();
  if (own && !begun_) begin(now_);
  if (!begun_) return;
  if (facts.damaged) context_.counters.count(ParseError::kJson);
  if (own) recognise(facts);
  if (own && facts.response_id && !response_id_known_) {
    response_id_known_ = true;
    context_.sink.on_response_id(id_, *facts.response_id, now_);
  }
  error_ = error_ || facts.error;
  server_aborted_ = server_aborted_ || facts.aborted;
  if (facts.prompt_tokens) take_prompt_tokens(*facts.prompt_tokens);
  for (const ChoiceFacts& choice : facts.choices) apply_choice(choice);
  apply_totals(facts);
  if (!facts.end_marker) return;
  const auto finished =
      std::count_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return s.finished_at; });
  if (finished >= static_cast<std::ptrdiff_t>(request_facts_.sequences)) end(outcome(true, true));
}

void Exchange::apply_choice(const ChoiceFacts& facts) {
  Sequence* sequence = sequence_of(facts.index);
  if (sequence == nullptr) return;
  const TokenCounter::Context context{
      .joined_late = orphan_,
      .lists_repeat = family_ == ServerFamily::kKoboldCpp,
      .first_list_has_prompt = request_facts_.echo,
  };
  const CountedTokens counted = sequence->counter.count(facts, context);
  if (counted.implausible) context_.counters.count(ParseError::kImplausible);
  sequence->characters += facts.characters;
  sequence->pending_characters += facts.characters;
  if (facts.finished && !sequence->finished_at) {
    sequence->finished_at = now_;
    last_finished_ = facts.index;
  }
  if (counted.tokens == 0) return;
  if (counted.source == TokenSource::kEstimated) sequence->pending_source = TokenSource::kEstimated;
  sequence->pending_tokens += counted.tokens;
  ++sequence->pending_frames;
  pending_ = true;
}

void Exchange::apply_totals(const FrameFacts& facts) {
  if (facts.total && *facts.total > kSequenceTokensMax) {
    context_.counters.count(ParseError::kImplausible);
    return;
  }
  const bool of_one = facts.choices.size() == 1 || facts.scope == TotalScope::kLastFinished;
  Sequence* sequence = nullptr;
  if (of_one && (facts.total || facts.draft_tokens)) {
    const bool named = facts.choices.size() == 1;
    const std::uint32_t only = sequences_.size() == 1 ? sequences_.front().choice : last_finished_;
    sequence = sequence_of(named ? facts.choices.front().index : only);
  }
  if (sequence != nullptr && facts.draft_tokens) {
    sequence->draft_tokens = facts.draft_tokens;
    sequence->draft_tokens_accepted = facts.draft_tokens_accepted;
  }
  if (!facts.total) return;
  if (facts.scope == TotalScope::kSum) {
    sum_total_ = facts.total;
  } else if (sequence != nullptr) {
    sequence->total = facts.total;
  }
}

// A whole answer: no token was seen to come, so all that is known are its totals.
void Exchange::apply_document() {
  const Reading reading = context_.reader.read_document(body_.document(), TextBuffer::kPadding, dialect_);
  const FrameFacts& facts = context_.reader.facts();
  if (reading == Reading::kNoJson) context_.counters.count(ParseError::kJson);
  if (reading != Reading::kOwn && reading != Reading::kNeutral) return;
  if (reading == Reading::kOwn) recognise(facts);
  error_ = error_ || facts.error;
  if (facts.prompt_tokens) take_prompt_tokens(*facts.prompt_tokens);
  for (const ChoiceFacts& choice : facts.choices) {
    Sequence* sequence = sequence_of(choice.index);
    if (sequence == nullptr) continue;
    sequence->characters += choice.characters;
    if (choice.cumulative && *choice.cumulative <= kSequenceTokensMax) sequence->total = choice.cumulative;
    sequence->finished_at = now_;
  }
  apply_totals(facts);
}

void Exchange::recognise(const FrameFacts& facts) {
  const bool other_family = facts.family != ServerFamily::kUnknown && facts.family != family_;
  const bool new_version = !facts.version.empty() && version_.empty();
  if (other_family) family_ = facts.family;
  if (new_version) version_ = facts.version;
  if (recognised_ && !other_family && !new_version) return;
  recognised_ = true;
  context_.sink.on_recognised(id_, family_, version_.view());
}

void Exchange::take_prompt_tokens(std::uint64_t tokens) {
  if (prompt_tokens_ == tokens) return;
  if (tokens > kSequenceTokensMax) {
    context_.counters.count(ParseError::kImplausible);
    return;
  }
  prompt_tokens_ = tokens;
  context_.sink.on_prompt_tokens(id_, tokens, now_);
}

Exchange::Sequence* Exchange::sequence_of(std::uint32_t choice) {
  for (Sequence& sequence : sequences_) {
    if (sequence.choice == choice) return &sequence;
  }
  if (sequences_.size() >= context_.limits.sequences_max) {
    context_.counters.count(ParseError::kTooManySequences);
    return nullptr;
  }
  Sequence& added = sequences_.emplace_back();
  added.choice = choice;
  return &added;
}

void Exchange::flush(LineTime at) {
  if (!pending_) return;
  pending_ = false;
  advance(at);
  for (Sequence& sequence : sequences_) {
    if (sequence.pending_tokens == 0) continue;
    TokenEvent event;
    event.exchange = id_;
    event.choice = sequence.choice;
    event.at = now_;
    event.tokens = sequence.pending_tokens;
    event.frames = sequence.pending_frames;
    event.characters = sequence.pending_characters;
    event.source = sequence.pending_source;
    sequence.pending_tokens = 0;
    sequence.pending_frames = 0;
    sequence.pending_characters = 0;
    sequence.pending_source = TokenSource::kExactLive;
    context_.sink.on_tokens(event);
  }
}

bool Exchange::all_finished() const {
  return !sequences_.empty() &&
         std::all_of(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return s.finished_at.has_value(); });
}

Outcome Exchange::outcome(bool marker, bool complete) const {
  if (error_) return Outcome::kError;
  if (server_aborted_) return Outcome::kAborted;
  // Every sequence said that it is finished: that is marker enough, whatever became of the last bytes.
  if (marker || all_finished()) return Outcome::kOk;
  const bool stream = !body_.is_document() && !body_.unreadable();
  if (complete && (until_close_ || !stream)) return Outcome::kOk;
  return Outcome::kAborted;
}

std::vector<SequenceTotal> Exchange::totals() {
  const bool sum_is_all = sum_total_.has_value() && sequences_.size() <= 1;
  if (sum_is_all && sequences_.empty()) sequence_of(0);
  std::vector<SequenceTotal> totals;
  totals.reserve(sequences_.size());
  bool any_open = false;
  for (Sequence& sequence : sequences_) {
    // A counter on the finishing frame is the sequence's total.
    if (!sequence.total && sequence.finished_at) sequence.total = sequence.counter.cumulative();
    if (sum_is_all) sequence.total = sum_total_;
    any_open = any_open || !sequence.total;
    totals.push_back({.choice = sequence.choice,
                      .tokens = sequence.total,
                      .finished_at = sequence.finished_at,
                      .characters = sequence.characters,
                      .draft_tokens = sequence.draft_tokens,
                      .draft_tokens_accepted = sequence.draft_tokens_accepted});
  }
  if (sum_total_ && any_open) {
    std::vector<std::uint64_t> weights;
    std::vector<std::uint64_t> shares(sequences_.size());
    const bool counted =
        std::any_of(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return s.counter.counted() != 0; });
    for (const Sequence& sequence : sequences_)
      weights.push_back(counted ? sequence.counter.counted() : sequence.characters);
    apportion(*sum_total_, weights, shares);
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i].tokens = shares[i];
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (sequences_[i].counter.counted() != 0 || totals[i].tokens) totals[kept++] = totals[i];
  }
  totals.resize(kept);
  return totals;
}

void Exchange::end(Outcome outcome) {
  ended_ = true;
  request_.release();
  if (!begun_) return;
  flush(now_);
  --context_.counters.exchanges_in_flight;
  const std::vector<SequenceTotal> all = totals();
  ExchangeEnd end;
  end.exchange = id_;
  end.at = now_;
  end.outcome = outcome;
  end.sequences = all;
  for (const Sequence& sequence : sequences_) {
    if (!sequence.draft_tokens) continue;
    end.draft_tokens = end.draft_tokens.value_or(0) + *sequence.draft_tokens;
    end.draft_tokens_accepted = end.draft_tokens_accepted.value_or(0) + sequence.draft_tokens_accepted.value_or(0);
  }
  context_.sink.on_end(end);
}

}  // namespace rooflined::tap
