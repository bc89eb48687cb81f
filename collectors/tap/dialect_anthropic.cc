// Anthropic Messages: /v1/messages, which llama.cpp, vLLM, SGLang, Ollama and others serve too.
//
// Events, told apart by their `type`. Tokens come in content_block_delta (text, thinking, the JSON of a tool call), and
// in content_block_start where that has text already; its `index` counts blocks, not choices. message_delta brings the
// stop reason and the exact total, message_stop is the end. The `output_tokens` of message_start is no count of
// anything. `input_tokens` leaves out what came from the cache.

#include "collectors/tap/dialect_events.h"
#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

enum class Event : std::uint8_t {
  kNone,
  kOther,
  kStart,
  kBlock,
  kDelta,
  kMessageDelta,
  kStop,
  kPing,
  kError,
  kMessage
};

Event event_of(JsonValue& value) {
  const std::string_view type = json_raw_string(value).value_or(std::string_view{});
  if (type == "content_block_delta") return Event::kDelta;
  if (type == "content_block_start" || type == "content_block_stop") return Event::kBlock;
  if (type == "message_start") return Event::kStart;
  if (type == "message_delta") return Event::kMessageDelta;
  if (type == "message_stop") return Event::kStop;
  if (type == "message") return Event::kMessage;
  if (type == "ping") return Event::kPing;
  if (type == "error") return Event::kError;
  return Event::kOther;
}

struct Usage {
  std::optional<std::uint64_t> input;
  std::uint64_t cached = 0;
  std::optional<std::uint64_t> output;

  void read(JsonValue& value) {
    json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
      if (key == "input_tokens") input = json_count(field);
      if (key == "output_tokens") output = positive(json_count(field));
      if (key == "cache_creation_input_tokens" || key == "cache_read_input_tokens") {
        cached += json_count(field).value_or(0);
      }
    });
  }
  std::optional<std::uint64_t> prompt() const { return input ? positive(*input + cached) : std::nullopt; }
};

// A delta, or a block of a whole message.
void read_block(JsonValue& value, ChoiceFacts& choice, bool& stopped) {
  json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    if (key == "text" || key == "partial_json") {
      read_text(field, choice);
    } else if (key == "thinking") {
      choice.reasoning = read_text(field, choice) || choice.reasoning;
    } else if (key == "stop_reason") {
      stopped = !json_is_null(field);
    }
  });
}

Shape read_anthropic(JsonFrame& frame, FrameFacts& facts) {
  Event event = Event::kNone;
  ChoiceFacts choice;
  Usage usage;
  bool stopped = false;
  const auto on_type = [&](JsonValue& value) { event = event_of(value); };
  read_event_frame(frame, facts, "message", on_type, [&](std::string_view key, JsonValue& value, bool nested) {
    if (key == "id") {
      read_response_id(value, facts);
    } else if (key == "usage") {
      usage.read(value);
    } else if (nested) {
      return;
    } else if (key == "delta" || key == "content_block") {
      read_block(value, choice, stopped);
    } else if (key == "content") {
      json_each_item(value, [&](JsonValue& block) { read_block(block, choice, stopped); });
    } else if (key == "stop_reason") {
      stopped = !json_is_null(value);
    }
  });
  switch (event) {
    case Event::kStart:
      facts.prompt_tokens = usage.prompt();
      return Shape::kOwn;
    case Event::kDelta:
      facts.choices.push_back(choice);
      return Shape::kOwn;
    case Event::kMessageDelta:
    case Event::kMessage:
      facts.prompt_tokens = usage.prompt();
      choice.finished = stopped;
      choice.cumulative = usage.output;
      facts.choices.push_back(choice);
      return Shape::kOwn;
    case Event::kStop:
      facts.last_frame = true;
      return Shape::kOwn;
    case Event::kBlock:
      if (choice.has_text) facts.choices.push_back(choice);
      return Shape::kOwn;
    case Event::kPing:
      return Shape::kNeutral;
    case Event::kError:
      facts.error = true;
      return Shape::kNeutral;
    case Event::kNone:
      return facts.error ? Shape::kNeutral : Shape::kForeign;
    case Event::kOther:
      break;
  }
  return Shape::kForeign;
}

constexpr std::array<DialectRoute, 1> kRoutes = {DialectRoute{"/v1/messages"}};

}  // namespace

constinit const Dialect kAnthropicDialect = {.name = "anthropic", .routes = kRoutes, .read = read_anthropic};

}  // namespace rooflined::tap
