#include "collectors/tap/exchange_tracker.h"

#include <algorithm>
#include <numeric>

namespace rooflined::tap {
namespace {

ServerFamily family_of_headers(const ResponseHead& head) {
  if (head.server == "llama.cpp") return ServerFamily::kLlamaCpp;
  if (head.server.starts_with("ConcedoLlama")) return ServerFamily::kKoboldCpp;
  if (head.compute_type_header) return ServerFamily::kTgi;
  return ServerFamily::kUnknown;
}

std::optional<std::uint64_t> positive_total(std::uint64_t tokens) {
  return tokens != 0 && tokens <= kSequenceTokensMax ? std::optional(tokens) : std::nullopt;
}

bool bears_tokens(const ChoiceFacts& choice) {
  return choice.has_text || choice.cumulative || choice.ids != 0 || choice.logprobs != 0;
}

}  // namespace

Exchange::Exchange(TapContext& context, const Endpoint& server, const RouteFit& route)
    : context_(context),
      server_(server),
      dialect_(route.dialect),
      route_streamed_(route.streamed),
      orphan_(route.dialect == nullptr),
      request_bytes_max_(context.limits.request_body_bytes_max),
      request_(context.counters.text),
      body_(context.limits, context.counters, *this),
      memo_(context.counters.text) {
  // Until the body was read. A body too big to be read is most often a long conversation, and those are streamed.
  request_facts_.streamed = true;
}

LineTime Exchange::advance(LineTime at) {
  now_ = std::max(now_, at);
  return now_;
}

void Exchange::request_announced(std::uint64_t bytes) {
  if (bytes > context_.limits.request_body_bytes_max) request_bytes_max_ = context_.limits.request_start_bytes_max;
}

void Exchange::take_request(std::string_view bytes) {
  if (!request_readable_) return;
  if (request_.append(bytes, request_bytes_max_)) return;
  context_.counters.count(ParseError::kRequestTooLong);
  const std::size_t start_max = context_.limits.request_start_bytes_max;
  if (request_.size() < start_max) {
    static_cast<void>(request_.append(bytes.substr(0, start_max - request_.size()), start_max));
  }
  // Images, most often. What kind of answer is asked for may stand in front of them.
  const auto facts = context_.reader.read_request_start(request_.view().substr(0, start_max), true);
  if (facts) {
    request_facts_.streamed = facts->streamed;
    request_facts_.sequences = facts->sequences;
    request_facts_.model = facts->model;
  }
  request_unreadable();
}

void Exchange::request_unreadable() {
  request_readable_ = false;
  request_.release();
}

void Exchange::request_complete(LineTime at) {
  request_complete_ = true;
  completed_at_ = at;
  if (request_readable_ && dialect_ != nullptr) {
    const auto facts = context_.reader.read_request(request_.view(), TextBuffer::kPadding, route_streamed_);
    if (facts) {
      request_facts_ = *facts;
      tentative_ = dialect_->loads_without_prompt && facts->empty_prompt && !begun_;
      if (facts->hidden_choices) context_.counters.count(ParseError::kHiddenChoices);
    } else {
      context_.counters.count(ParseError::kJson);
    }
  }
  request_.release();
}

void Exchange::begin(LineTime at) {
  if (begun_) return;
  if (!begin_at_) begin_at_ = at;
  advance(at);
  if (!tentative_) begin_now();
}

void Exchange::begin_now() {
  begun_ = true;
  id_ = ++context_.last_exchange;
  ++context_.counters.exchanges;
  ++context_.counters.exchanges_in_flight;
  ExchangeBegin begin;
  begin.exchange = id_;
  begin.server = server_;
  begin.at = begin_at_.value_or(now_);
  begin.streamed = request_facts_.streamed;
  begin.joined_late = orphan_;
  begin.prompt_characters = request_facts_.prompt_characters;
  begin.prompt_tokens = request_facts_.prompt_tokens;
  begin.prompts = request_facts_.prompts;
  begin.model = request_facts_.model;
  context_.sink.on_begin(begin);
}

void Exchange::response_head(const ResponseHead& head, bool until_close, LineTime at) {
  if (!orphan_) begin(at);
  advance(at);
  until_close_ = until_close;
  family_ = family_of_headers(head);
  python_server_ = head.server == "uvicorn";
  if (head.status >= 400) error_ = true;
  const bool stream = head.media_type == MediaType::kEventStream || head.media_type == MediaType::kNdjson;
  // Whatever an unknown request asked for: only a stream can be told from anything else.
  body_skipped_ = head.status >= 400 || (orphan_ && !stream);
  if (body_skipped_) return;
  body_.start(head.media_type, head.fields.coding, request_facts_.streamed, head.fields.content_length.has_value());
  if (head.generated_tokens) sum_total_ = positive_total(*head.generated_tokens);
  if (head.prompt_tokens && begun_) take_prompt_tokens(*head.prompt_tokens);
  // Nothing of it can be read; but who answers a generation route like this is an inference server.
  const bool answer = stream || head.media_type == MediaType::kJson;
  if (body_.unreadable() && answer && begun_) recognise(FrameFacts(), false);
}

void Exchange::response_body(std::string_view bytes, LineTime at) {
  if (ended_ || body_skipped_) return;
  advance(at);
  body_bytes_ += bytes.size();
  body_.feed(bytes);
  // Not at the end itself: that comes out of the middle of feed().
  if (ended_) body_.release();
}

void Exchange::response_missing(std::uint64_t bytes, LineTime at) {
  if (ended_) return;
  advance(at);
  body_.gap();
  if (begun_ && !ended_) {
    flush(at);
    context_.sink.on_loss(id_, tokens_in(bytes), now_);
  }
}

// How many tokens so many bytes of the body bear, as those that were seen did.
double Exchange::tokens_in(std::uint64_t bytes) const {
  if (tokens_borne_ == 0) return 0;
  return static_cast<double>(bytes) * static_cast<double>(tokens_borne_) / static_cast<double>(body_bytes_);
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
  const bool ordinary = recognised_ && !frame.error && !frame.cut;
  if (const ChoiceFacts* known = ordinary ? memo_.read(frame.text) : nullptr) {
    apply_choice(*known);
    return;
  }
  error_ = error_ || frame.error;
  context_.reader.want_response_id(!response_id_known_);
  Reading reading = context_.reader.read_frame(frame.text, frame.readable_after, dialect_);
  if (context_.reader.cleaned()) ++context_.counters.frames_cleaned;
  // Only in a stream that is known: elsewhere nothing tells a damaged frame from anything else.
  if (context_.reader.damaged() && recognised_ && !frame.cut) {
    reading = context_.reader.read_damaged(frame.text, dialect_);
  }
  if (reading == Reading::kNoJson && !frame.error) context_.counters.count(ParseError::kJson);
  if (reading == Reading::kUnknown && !frame.error) ++context_.counters.frames_unknown;
  if (reading == Reading::kOwn || reading == Reading::kNeutral) apply_frame(reading == Reading::kOwn);
  if (reading == Reading::kOwn && ordinary && !ended_) memo_.learn(frame.text, context_.reader.facts());
  // An event stream on a generation route whose first word is an error: a server of that dialect all the same.
  if (error_ && begun_ && !ended_ && !recognised_ && dialect_ != nullptr) recognise(FrameFacts(), false);
}

// Whether what was read belongs to an exchange, which begins now if it has not yet.
bool Exchange::is_exchange(const FrameFacts& facts) {
  if (begun_ || facts.loads_only) return begun_;
  const bool tokens = std::any_of(facts.choices.begin(), facts.choices.end(), bears_tokens);
  if (tentative_ && !tokens) return false;
  if (request_facts_.model == 0) request_facts_.model = facts.model;
  begin_now();
  return true;
}

void Exchange::apply_frame(bool own) {
  const FrameFacts& facts = context_.reader.facts();
  if (!begun_ && !(own && is_exchange(facts))) return;
  if (facts.damaged) context_.counters.count(ParseError::kJson);
  if (own) recognise(facts, true);
  if (own && facts.response_id && !response_id_known_) {
    response_id_known_ = true;
    context_.sink.on_response_id(id_, *facts.response_id, now_);
  }
  error_ = error_ || facts.error;
  server_aborted_ = server_aborted_ || facts.aborted;
  remote_ = remote_ || facts.remote;
  if (facts.prompt_tokens && !remote_) take_prompts(facts);
  for (const ChoiceFacts& choice : facts.choices) apply_choice(choice);
  apply_totals(facts);
  if (facts.last_frame) {
    end(outcome(true, true));
    return;
  }
  if (!facts.end_marker) return;
  const auto finished =
      std::count_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return s.finished_at; });
  if (finished >= static_cast<std::ptrdiff_t>(request_facts_.sequences)) end(outcome(true, true));
}

// A whole answer: no token was seen to come, so all that is known are its totals.
void Exchange::apply_document() {
  context_.reader.want_response_id(true);
  const Reading reading = context_.reader.read_document(body_.document(), TextBuffer::kPadding, dialect_);
  const FrameFacts& facts = context_.reader.facts();
  if (reading == Reading::kNoJson) context_.counters.count(ParseError::kJson);
  if (reading != Reading::kOwn && reading != Reading::kNeutral) return;
  if (!is_exchange(facts)) return;
  if (reading == Reading::kOwn) recognise(facts, true);
  if (reading == Reading::kOwn && facts.response_id) context_.sink.on_response_id(id_, *facts.response_id, now_);
  error_ = error_ || facts.error;
  if (facts.remote) return;
  if (facts.prompt_tokens) take_prompt_tokens(*facts.prompt_tokens);
  for (const ChoiceFacts& choice : facts.choices) {
    Sequence* sequence = sequence_of(choice.index);
    if (sequence == nullptr) continue;
    sequence->characters += choice.characters;
    if (choice.cumulative && *choice.cumulative <= kSequenceTokensMax) sequence->total = choice.cumulative;
    if (choice.draft_tokens) {
      sequence->draft_tokens = choice.draft_tokens;
      sequence->draft_tokens_accepted = choice.draft_tokens_accepted;
    }
    sequence->finished_at = now_;
  }
  apply_totals(facts);
}

void Exchange::recognise(const FrameFacts& facts, bool shape_known) {
  ServerFamily family = facts.family;
  // A proxy written in Python speaks the dialect of the engine behind it, or imitates one.
  const bool shape_tells = shape_known && family_ == ServerFamily::kUnknown && !python_server_ && dialect_ != nullptr;
  if (family == ServerFamily::kUnknown && shape_tells) family = dialect_->family;
  const bool other_family = family != ServerFamily::kUnknown && family != family_;
  const bool new_version = !facts.version.empty() && version_.empty();
  if (other_family) family_ = family;
  if (new_version) version_ = facts.version;
  if (recognised_ && !other_family && !new_version) return;
  recognised_ = true;
  context_.sink.on_recognised(id_, family_, version_.view());
}

// A frame of one choice tells the length of that one's prompt, a frame of none that of all together.
void Exchange::take_prompts(const FrameFacts& facts) {
  const std::size_t prompts = request_facts_.prompts;
  if (prompts == 1 || facts.choices.size() != 1 || prompts > context_.limits.sequences_max) {
    take_prompt_tokens(*facts.prompt_tokens);
    return;
  }
  // Choices are numbered prompt by prompt.
  const std::size_t prompt = facts.choices.front().index / (request_facts_.sequences / prompts);
  if (prompt >= prompts || *facts.prompt_tokens > kSequenceTokensMax) return;
  prompt_lengths_.resize(prompts);
  prompt_lengths_[prompt] = *facts.prompt_tokens;
  const bool all_known = std::count(prompt_lengths_.begin(), prompt_lengths_.end(), 0U) == 0;
  if (all_known) take_prompt_tokens(std::accumulate(prompt_lengths_.begin(), prompt_lengths_.end(), std::uint64_t{0}));
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
  const bool needs_marker = stream && !until_close_ && !(dialect_ != nullptr && dialect_->ends_with_body);
  if (complete && !needs_marker) return Outcome::kOk;
  return Outcome::kAborted;
}

void Exchange::end(Outcome outcome) {
  ended_ = true;
  memo_.release();
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
