// What the OpenAI dialects (chat and completions) and the servers that bend them share.

#pragma once

#include "collectors/tap/dialect_facts.h"
#include "collectors/tap/json_reader.h"

#include <string_view>

namespace rooflined::tap {

// Counts that stand beside the choices of a frame.
struct OpenAiTotals {
  std::optional<std::uint64_t> usage_completion;
  std::optional<std::uint64_t> usage_prompt;
  std::optional<std::uint64_t> usage_output;  // by these names only where the others are not there
  std::optional<std::uint64_t> usage_input;
  std::optional<std::uint64_t> timings_predicted;
  std::optional<std::uint64_t> timings_prompt;
};

// A count of zero says nothing: Ollama's completions carry zeros on every frame, and role frames stand before any
// token.
std::optional<std::uint64_t> positive(std::optional<std::uint64_t> count);

void read_usage(JsonValue& value, OpenAiTotals& totals);
// The same inside of a choice: its own count.
void read_choice_usage(JsonValue& value, ChoiceFacts& choice, OpenAiTotals& totals);
// llama.cpp's `timings`: proof of that family, and of speculation where drafts were made.
void read_timings(JsonValue& value, OpenAiTotals& totals, FrameFacts& facts);
// vLLM's `metrics` on the last frame: its draft counts.
void read_metrics(JsonValue& value, FrameFacts& facts);
void read_fingerprint(JsonValue& value, FrameFacts& facts);
// The id of the response, where it can be the only one of its kind: a hash of it, the id itself is not kept.
void read_response_id(JsonValue& value, FrameFacts& facts);
// model_name_hash() of a name; 0: it is none.
std::uint64_t read_model(JsonValue& value);
// Adds a string's characters to a choice; true where there is text.
bool read_text(JsonValue& value, ChoiceFacts& choice);
// `tool_calls` and `function_call` of a message: names and arguments, as text or as an object.
void read_tool_calls(JsonValue& value, ChoiceFacts& choice);
void read_function(JsonValue& value, ChoiceFacts& choice);
// `index` where it is a number.
void read_index(JsonValue& value, ChoiceFacts& choice);
// `error`: anything but null.
void read_error(JsonValue& value, FrameFacts& facts);
// `finish_reason` and its like: null and "" mean that it goes on.
void read_finish_reason(JsonValue& value, ChoiceFacts& choice, FrameFacts& facts);
// `logprobs` of a choice, in the form of either route.
void read_logprobs(JsonValue& value, ChoiceFacts& choice);

// Puts the totals where they belong: to the one choice of the frame, or beside all.
void place_totals(const OpenAiTotals& totals, FrameFacts& facts);

enum class OpenAiObject : std::uint8_t { kNone, kOther, kChat, kCompletion, kError };

struct OpenAiFrame {
  bool has_choices = false;
  bool has_counts = false;
  OpenAiObject object = OpenAiObject::kNone;
};

// Reads the fields around the choices; `on_choice(JsonObject&, ChoiceFacts&)` reads the text of each.
template <typename OnChoice>
OpenAiFrame read_openai_frame(JsonFrame& frame, FrameFacts& facts, OnChoice on_choice);

OpenAiObject openai_object_of(JsonValue& value);
// A field of a choice that is the same in both dialects. False: not one of those.
bool read_choice_field(std::string_view key, JsonValue& value, ChoiceFacts& choice, FrameFacts& facts);

template <typename OnChoice>
OpenAiFrame read_openai_frame(JsonFrame& frame, FrameFacts& facts, OnChoice on_choice) {
  OpenAiFrame read;
  OpenAiTotals totals;
  const bool whole = json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (key == "choices") {
      read.has_choices = json_each_item(value,
                                        [&](JsonValue& item) {
                                          JsonObject object;
                                          if (item.get_object().get(object) != simdjson::SUCCESS) return;
                                          ChoiceFacts* choice = facts.add_choice();
                                          if (choice == nullptr) return;
                                          // One whose index is missing is the one at its place.
                                          choice->index = static_cast<std::uint32_t>(facts.choices.size() - 1);
                                          const bool whole_choice =
                                              json_each_field(object, [&](std::string_view name, JsonValue& field) {
                                                if (name == "usage") {
                                                  read_choice_usage(field, *choice, totals);
                                                  return;
                                                }
                                                if (!read_choice_field(name, field, *choice, facts))
                                                  on_choice(name, field, *choice);
                                              });
                                          facts.damaged = facts.damaged || !whole_choice;
                                        }) ||
                         !facts.choices.empty();
    } else if (key == "usage") {
      read_usage(value, totals);
    } else if (key == "timings") {
      read_timings(value, totals, facts);
    } else if (key == "system_fingerprint") {
      read_fingerprint(value, facts);
    } else if (key == "id") {
      read_response_id(value, facts);
    } else if (key == "model") {
      facts.model = read_model(value);
    } else if (key == "object") {
      read.object = openai_object_of(value);
    } else if (key == "error") {
      read_error(value, facts);
    } else if (key == "metrics") {
      read_metrics(value, facts);
    } else if (key == "sglext") {
      facts.family = ServerFamily::kSglang;
    }
  });
  facts.damaged = facts.damaged || !whole;
  facts.error = facts.error || read.object == OpenAiObject::kError;
  read.has_counts = totals.usage_completion || totals.timings_predicted;
  place_totals(totals, facts);
  return read;
}

}  // namespace rooflined::tap
