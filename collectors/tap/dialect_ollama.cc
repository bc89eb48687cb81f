// Ollama's own routes: /api/generate and /api/chat, lines of JSON; streamed unless the request says otherwise.
//
// Text is in `response` and `thinking`, or in `message`: content, thinking, tool calls (whole, at once). The line with
// "done":true ends the stream, may hold text too, and brings the totals, of which each is left out where it is zero.
// A request without a prompt only loads a model. Several servers imitate these routes, so the shape proves no family.

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

void read_thinking(JsonValue& value, ChoiceFacts& choice) {
  if (read_text(value, choice)) choice.reasoning = true;
}

void read_message(JsonValue& value, ChoiceFacts& choice) {
  json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    if (key == "content") {
      read_text(field, choice);
    } else if (key == "thinking") {
      read_thinking(field, choice);
    } else if (key == "tool_calls") {
      read_tool_calls(field, choice);
    }
  });
}

Shape read_ollama(JsonFrame& frame, FrameFacts& facts) {
  ChoiceFacts choice;
  std::optional<bool> done;
  bool has_answer = false;
  bool foreign = false;
  const bool whole = json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (key == "response") {
      has_answer = json_raw_string(value).has_value();
      read_text(value, choice);
    } else if (key == "thinking") {
      read_thinking(value, choice);
    } else if (key == "message") {
      has_answer = true;
      read_message(value, choice);
    } else if (key == "done") {
      done = json_bool(value);
    } else if (key == "done_reason") {
      const std::string_view reason = json_raw_string(value).value_or(std::string_view{});
      facts.loads_only = reason == "load" || reason == "unload";
    } else if (key == "eval_count") {
      choice.cumulative = positive(json_count(value));
    } else if (key == "prompt_eval_count") {
      facts.prompt_tokens = positive(json_count(value));
    } else if (key == "logprobs") {
      choice.logprobs = json_array_size(value);
    } else if (key == "model") {
      facts.model = read_model(value);
    } else if (key == "remote_host") {
      facts.remote = !json_raw_string(value).value_or(std::string_view{}).empty();
    } else if (key == "error") {
      read_error(value, facts);
    } else if (key == "choices") {
      foreign = true;
    }
  });
  facts.damaged = facts.damaged || !whole;
  if (foreign) return Shape::kForeign;
  if (!done || !(has_answer || *done)) return facts.error ? Shape::kNeutral : Shape::kForeign;
  choice.finished = *done;
  facts.last_frame = *done;
  facts.choices.push_back(choice);
  return Shape::kOwn;
}

constexpr std::array<DialectRoute, 2> kRoutes = {DialectRoute{"/api/generate", true}, DialectRoute{"/api/chat", true}};

}  // namespace

constinit const Dialect kOllamaDialect = {.name = "ollama",
                                          .routes = kRoutes,
                                          .family = ServerFamily::kOllama,
                                          .loads_without_prompt = true,
                                          .read = read_ollama};

}  // namespace rooflined::tap
