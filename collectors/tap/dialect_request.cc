#include "collectors/tap/dialect_request.h"

#include "collectors/tap/json_reader.h"

#include <algorithm>

namespace rooflined::tap {
namespace {

// Choices and prompts of one request: more is somebody's joke.
constexpr std::uint64_t kSequencesMax = 4096;

struct Prompt {
  std::uint64_t characters = 0;
  std::uint64_t ids = 0;
  std::uint32_t texts = 0;
  std::uint32_t lists = 0;  // prompts that are lists themselves
};

void add_text(JsonValue& value, std::uint64_t& characters) {
  if (const auto raw = json_raw_string(value)) characters += json_characters(*raw);
}

bool is_number(JsonValue& value) {
  const std::string_view token = value.raw_json_token();
  return !token.empty() && (token.front() == '-' || (token.front() >= '0' && token.front() <= '9'));
}

bool starts_with(JsonValue& value, char c) {
  const std::string_view token = value.raw_json_token();
  return !token.empty() && token.front() == c;
}

void add_prompt_item(JsonValue& item, Prompt& prompt) {
  if (is_number(item)) {
    ++prompt.ids;
  } else if (starts_with(item, '"')) {
    ++prompt.texts;
    add_text(item, prompt.characters);
  }
}

void add_prompt_object(JsonValue& value, Prompt& prompt) {
  JsonObject object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return;
  ++prompt.texts;
  json_each_field(object, [&](std::string_view key, JsonValue& field) {
    if (key == "prompt_string") add_text(field, prompt.characters);
  });
}

// A string, ids, strings and ids mixed, or a list of any of those.
Prompt read_prompt(JsonValue& value) {
  Prompt prompt;
  if (starts_with(value, '"')) {
    ++prompt.texts;
    add_text(value, prompt.characters);
  } else if (starts_with(value, '{')) {
    add_prompt_object(value, prompt);
  } else if (starts_with(value, '[')) {
    json_each_item(value, [&](JsonValue& item) {
      if (starts_with(item, '[')) {
        ++prompt.lists;
        json_each_item(item, [&](JsonValue& inner) { add_prompt_item(inner, prompt); });
      } else if (starts_with(item, '{')) {
        add_prompt_object(item, prompt);
      } else {
        add_prompt_item(item, prompt);
      }
    });
  }
  return prompt;
}

// Only text parts count: an image in base64 is no text.
void add_message_content(JsonValue& value, std::uint64_t& characters) {
  if (starts_with(value, '"')) {
    add_text(value, characters);
    return;
  }
  if (!starts_with(value, '[')) return;
  json_each_item(value, [&](JsonValue& part) {
    JsonObject object;
    if (part.get_object().get(object) != simdjson::SUCCESS) return;
    json_each_field(object, [&](std::string_view key, JsonValue& field) {
      if (key == "text") add_text(field, characters);
    });
  });
}

void add_messages(JsonValue& value, std::uint64_t& characters) {
  if (!starts_with(value, '[')) return;
  json_each_item(value, [&](JsonValue& message) {
    JsonObject object;
    if (message.get_object().get(object) != simdjson::SUCCESS) return;
    json_each_field(object, [&](std::string_view key, JsonValue& field) {
      if (key == "content") add_message_content(field, characters);
    });
  });
}

}  // namespace

RequestFacts read_request_body(JsonFrame& frame, bool streamed_by_default) {
  RequestFacts facts;
  facts.streamed = streamed_by_default;
  Prompt prompt;
  std::uint64_t choices = 1;
  json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (key == "stream") {
      facts.streamed = json_bool(value).value_or(facts.streamed);
    } else if (key == "prompt") {
      prompt = read_prompt(value);
    } else if (key == "messages") {
      add_messages(value, facts.prompt_characters);
    } else if (key == "input_prefix" || key == "input_suffix") {
      add_text(value, facts.prompt_characters);
    } else if (key == "n" || key == "n_cmpl") {
      choices = json_count(value).value_or(1);
    } else if (key == "echo") {
      facts.echo = json_bool(value).value_or(false);
    }
  });
  facts.prompt_characters += prompt.characters;
  if (prompt.ids != 0 && prompt.texts == 0) facts.prompt_tokens = prompt.ids;
  // Strings in a list are prompts of their own; beside ids they are parts of one.
  const std::uint64_t prompts = prompt.lists + (prompt.ids != 0 && prompt.lists == 0 ? 1 : prompt.texts);
  const std::uint64_t sequences =
      std::max<std::uint64_t>(prompts, 1) * std::clamp<std::uint64_t>(choices, 1, kSequencesMax);
  facts.sequences = static_cast<std::uint32_t>(std::min(sequences, kSequencesMax));
  return facts;
}

}  // namespace rooflined::tap
