// LM Studio's own route /api/v1/chat.
//
// Events, told apart by their `type`. Tokens come in message.delta, reasoning.delta and tool_call.arguments; chat.end
// is the end, brings the totals and repeats all text.

#include "collectors/tap/dialect_events.h"
#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_table.h"

#include <algorithm>
#include <array>

namespace rooflined::tap {
namespace {

enum class Event : std::uint8_t { kNone, kOther, kOwn, kText, kReasoning, kTool, kEnd, kError };

Event event_of(JsonValue& value) {
  const std::string_view type = json_raw_string(value).value_or(std::string_view{});
  if (type == "message.delta") return Event::kText;
  if (type == "reasoning.delta") return Event::kReasoning;
  if (type == "tool_call.arguments") return Event::kTool;
  if (type == "chat.end") return Event::kEnd;
  if (type == "error") return Event::kError;
  constexpr std::array<std::string_view, 6> kOwn = {"chat.",    "model_load.", "prompt_processing.",
                                                    "message.", "reasoning.",  "tool_call."};
  const bool own =
      std::any_of(kOwn.begin(), kOwn.end(), [&](std::string_view start) { return type.starts_with(start); });
  return own ? Event::kOwn : Event::kOther;
}

struct Answer {
  std::optional<std::uint64_t> output_tokens;
  bool has_stats = false;
};

// A field of the result, which is a whole answer, or lies in `result` of chat.end.
void read_result_field(std::string_view key, JsonValue& value, Answer& answer, FrameFacts& facts) {
  if (key == "response_id") read_response_id(value, facts);
  if (key != "stats") return;
  json_each_field_of(value, [&](std::string_view name, JsonValue& field) {
    if (name == "total_output_tokens") {
      answer.has_stats = true;
      answer.output_tokens = positive(json_count(field));
    } else if (name == "input_tokens") {
      facts.prompt_tokens = positive(json_count(field));
    }
  });
}

Shape read_lmstudio(JsonFrame& frame, FrameFacts& facts) {
  Event event = Event::kNone;
  ChoiceFacts choice;
  Answer answer;
  const auto on_type = [&](JsonValue& value) { event = event_of(value); };
  read_event_frame(frame, facts, "result", on_type, [&](std::string_view key, JsonValue& value, bool nested) {
    if (key == "content" && !nested) {
      read_text(value, choice);
    } else if (key == "arguments" && !nested) {
      // An object, or its text.
      if (!read_text(value, choice)) choice.has_text = !json_is_null(value) && !choice.empty_text;
    } else {
      read_result_field(key, value, answer, facts);
    }
  });
  switch (event) {
    case Event::kText:
    case Event::kReasoning:
    case Event::kTool:
      choice.reasoning = event == Event::kReasoning;
      facts.choices.push_back(choice);
      return Shape::kOwn;
    case Event::kOwn:
      return Shape::kOwn;
    case Event::kError:
      facts.error = true;
      return Shape::kNeutral;
    case Event::kNone:
      if (!answer.has_stats) return facts.error ? Shape::kNeutral : Shape::kForeign;
      break;
    case Event::kEnd:
      break;
    case Event::kOther:
      return Shape::kForeign;
  }
  facts.last_frame = true;
  facts.choices.push_back({.finished = true, .cumulative = answer.output_tokens});
  return Shape::kOwn;
}

constexpr std::array<DialectRoute, 1> kRoutes = {DialectRoute{"/api/v1/chat"}};

}  // namespace

constinit const Dialect kLmStudioDialect = {
    .name = "lmstudio", .routes = kRoutes, .family = ServerFamily::kLmStudio, .read = read_lmstudio};

}  // namespace rooflined::tap
