// OpenAI chat completions: /v1/chat/completions, as spoken by nearly every server.
//
// Text is in choices[].delta (of a stream) or .message (of a whole answer): content, reasoning under any of its names,
// tool calls. The same reasoning under two names is one text. A frame with role and empty content bears no token by
// itself.

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

bool is_reasoning_key(std::string_view key) {
  return key == "reasoning_content" || key == "reasoning" || key == "reasoning_text" || key == "thinking";
}

bool is_text_key(std::string_view key) {
  return key == "content" || key == "refusal" || is_reasoning_key(key);
}

// A text, or a list of its parts: {"type":"text","text":…}, and for reasoning a list of those (Mistral's form).
void read_parts(JsonValue& value, ChoiceFacts& choice, int depth = 2) {
  read_text(value, choice);
  if (depth == 0 || !value.raw_json_token().starts_with('[')) return;
  json_each_item(value, [&](JsonValue& part) {
    json_each_field_of(part, [&](std::string_view key, JsonValue& field) {
      if (key != "text" && key != "thinking") return;
      read_parts(field, choice, depth - 1);
      choice.reasoning = choice.reasoning || (key == "thinking" && choice.has_text);
    });
  });
}

void read_delta(JsonValue& value, ChoiceFacts& choice) {
  JsonObject delta;
  if (value.get_object().get(delta) != simdjson::SUCCESS) return;
  std::uint32_t reasoning = 0;
  json_each_field(delta, [&](std::string_view key, JsonValue& field) {
    if (is_text_key(key)) {
      const std::uint32_t before = choice.characters;
      read_parts(field, choice);
      if (!is_reasoning_key(key)) return;
      // `reasoning` and `reasoning_content` side by side hold the same text.
      const std::uint32_t added = choice.characters - before;
      choice.reasoning = choice.reasoning || added > 0;
      choice.characters = before + (added > reasoning ? added - reasoning : 0);
      reasoning = added > reasoning ? added : reasoning;
    } else if (key == "role") {
      choice.role = true;
    } else if (key == "tool_calls") {
      read_tool_calls(field, choice);
    } else if (key == "function_call") {
      read_function(field, choice);
    }
  });
}

Shape read_chat(JsonFrame& frame, FrameFacts& facts) {
  bool own = false;
  bool foreign = false;
  const OpenAiFrame read =
      read_openai_frame(frame, facts, [&](std::string_view key, JsonValue& value, ChoiceFacts& choice) {
        if (key == "delta" || key == "message") {
          own = true;
          read_delta(value, choice);
        } else if (key == "text") {
          foreign = true;
        }
      });
  if (own) return Shape::kOwn;
  if (foreign || read.object == OpenAiObject::kCompletion) return Shape::kForeign;
  if (read.has_choices) return read.object == OpenAiObject::kChat ? Shape::kOwn : Shape::kNeutral;
  return facts.error || read.has_counts ? Shape::kNeutral : Shape::kForeign;
}

constexpr std::array<DialectRoute, 1> kRoutes = {DialectRoute{"/chat/completions"}};

}  // namespace

constinit const Dialect kOpenAiChatDialect = {.name = "openai_chat", .routes = kRoutes, .read = read_chat};

}  // namespace rooflined::tap
