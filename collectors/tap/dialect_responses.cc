// OpenAI Responses: /v1/responses.
//
// Events, told apart by their `type`. Tokens come in the events that end in `.delta`; those that end in `.done` repeat
// what was said. response.completed, .incomplete and .failed are the end and bring the exact total. A stream that is
// taken up again is fetched with GET, and is none of ours.

#include "collectors/tap/dialect_events.h"
#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

enum class Event : std::uint8_t { kNone, kOther, kOwn, kDelta, kReasoningDelta, kEnd, kFailed, kError };

Event event_of(JsonValue& value) {
  const std::string_view type = json_raw_string(value).value_or(std::string_view{});
  if (type == "error") return Event::kError;
  if (!type.starts_with("response.")) return Event::kOther;
  if (type == "response.completed" || type == "response.incomplete") return Event::kEnd;
  if (type == "response.failed") return Event::kFailed;
  if (!type.ends_with(".delta") || type.starts_with("response.audio")) return Event::kOwn;
  return type.starts_with("response.reasoning") ? Event::kReasoningDelta : Event::kDelta;
}

struct Answer {
  std::optional<std::uint64_t> output_tokens;
  bool is_response = false;
  bool ended = false;
  ChoiceFacts choice;  // text of the items, where there are any
};

void read_usage_of(JsonValue& value, Answer& answer, FrameFacts& facts) {
  json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    if (key == "output_tokens") answer.output_tokens = positive(json_count(field));
    if (key == "input_tokens") facts.prompt_tokens = positive(json_count(field));
  });
}

void read_output_item(JsonValue& item, ChoiceFacts& choice) {
  json_each_field_of(item, [&](std::string_view key, JsonValue& value) {
    if (key == "arguments") read_text(value, choice);
    if (key != "content") return;
    json_each_item(value, [&](JsonValue& part) {
      json_each_field_of(part, [&](std::string_view name, JsonValue& field) {
        if (name == "text" || name == "refusal") read_text(field, choice);
      });
    });
  });
}

// A field of the response itself, which is a whole answer, or lies in `response` of an event.
void read_response_field(std::string_view key, JsonValue& value, Answer& answer, FrameFacts& facts) {
  if (key == "id") {
    read_response_id(value, facts);
  } else if (key == "object") {
    answer.is_response = json_raw_string(value) == std::string_view("response");
  } else if (key == "status") {
    const std::string_view status = json_raw_string(value).value_or(std::string_view{});
    answer.ended = status == "completed" || status == "incomplete";
    facts.error = facts.error || status == "failed";
    facts.aborted = facts.aborted || status == "cancelled";
  } else if (key == "usage") {
    read_usage_of(value, answer, facts);
  } else if (key == "timings") {
    OpenAiTotals totals;
    read_timings(value, totals, facts);
  } else if (key == "output") {
    json_each_item(value, [&](JsonValue& item) { read_output_item(item, answer.choice); });
  }
}

Shape read_responses(JsonFrame& frame, FrameFacts& facts) {
  Event event = Event::kNone;
  ChoiceFacts choice;
  Answer answer;
  const auto on_type = [&](JsonValue& value) { event = event_of(value); };
  read_event_frame(frame, facts, "response", on_type, [&](std::string_view key, JsonValue& value, bool nested) {
    if (key == "delta" && !nested) {
      read_text(value, choice);
    } else if (key == "logprobs" && !nested) {
      choice.logprobs = json_array_size(value);
    } else if (key != "output" || !nested) {  // at the end of a stream, the text was there before
      read_response_field(key, value, answer, facts);
    }
  });
  const bool document = event == Event::kNone && answer.is_response;
  if (event == Event::kNone && !document) return facts.error ? Shape::kNeutral : Shape::kForeign;
  if (event == Event::kOther) return Shape::kForeign;
  if (event == Event::kError) {
    facts.error = true;
    return Shape::kNeutral;
  }
  facts.last_frame = event == Event::kEnd || event == Event::kFailed;
  facts.error = facts.error || event == Event::kFailed;
  if (event == Event::kDelta || event == Event::kReasoningDelta) {
    choice.reasoning = event == Event::kReasoningDelta;
    facts.choices.push_back(choice);
  } else if (facts.last_frame || document) {
    answer.choice.finished = event == Event::kEnd || answer.ended;
    answer.choice.cumulative = answer.output_tokens;
    facts.choices.push_back(answer.choice);
  }
  return Shape::kOwn;
}

constexpr std::array<DialectRoute, 1> kRoutes = {DialectRoute{"/responses"}};

}  // namespace

constinit const Dialect kResponsesDialect = {.name = "responses", .routes = kRoutes, .read = read_responses};

}  // namespace rooflined::tap
