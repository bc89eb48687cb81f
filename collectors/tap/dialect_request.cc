#include "collectors/tap/dialect_request.h"

#include "collectors/tap/dialect_openai.h"
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

// Only text parts count: an image in base64 is no text. OpenAI's Responses call a part's type input_text; its text is
// `text` all the same.
void add_message_content(JsonValue& value, std::uint64_t& characters) {
  if (starts_with(value, '"')) {
    add_text(value, characters);
    return;
  }
  if (!starts_with(value, '[')) return;
  json_each_item(value, [&](JsonValue& part) {
    json_each_field_of(part, [&](std::string_view key, JsonValue& field) {
      if (key == "text") add_text(field, characters);
    });
  });
}

struct Messages {
  std::uint64_t count = 0;
  std::uint64_t characters = 0;
  std::uint64_t last_characters = 0;
  bool last_is_assistant = false;
};

void add_messages(JsonValue& value, Messages& messages) {
  if (!starts_with(value, '[')) return;
  json_each_item(value, [&](JsonValue& message) {
    std::uint64_t characters = 0;
    bool assistant = false;
    json_each_field_of(message, [&](std::string_view key, JsonValue& field) {
      if (key == "content") add_message_content(field, characters);
      if (key == "role") assistant = json_raw_string(field) == std::string_view("assistant");
    });
    ++messages.count;
    messages.characters += characters;
    messages.last_characters = characters;
    messages.last_is_assistant = assistant;
  });
}

// What the fields say one by one; what they mean together comes after the last.
struct Fields {
  Prompt prompt;
  Messages messages;
  std::uint64_t choices = 1;
  std::uint64_t other_characters = 0;  // of texts around the prompt
  std::uint64_t candidates = 1;        // of which `choices` are sent
  bool beams = false;
  std::optional<std::uint64_t> tokens_max;
  bool generation_prompt = true;
};

bool read_prompt_field(std::string_view key, JsonValue& value, Fields& fields) {
  // `text` is SGLang's prompt, and an object of options in OpenAI's Responses.
  const bool plain_prompt = key == "prompt" || key == "inputs" || key == "input_ids" || key == "text_input";
  if (plain_prompt || (key == "text" && !starts_with(value, '{'))) {
    fields.prompt = read_prompt(value);
  } else if (key == "messages" || (key == "input" && starts_with(value, '['))) {
    add_messages(value, fields.messages);
  } else if (key == "input") {
    fields.prompt = read_prompt(value);
  } else if (key == "system" || key == "instructions" || key == "system_prompt") {
    add_message_content(value, fields.other_characters);
  } else if (key == "input_prefix" || key == "input_suffix" || key == "memory" || key == "suffix") {
    add_text(value, fields.other_characters);
  } else {
    return false;
  }
  return true;
}

// Each option's name, wherever it stands: TGI's are in an object of their own.
void read_candidates(std::string_view key, JsonValue& value, Fields& fields) {
  if (key == "best_of") {
    fields.candidates = json_count(value).value_or(1);
  } else if (key == "use_beam_search") {
    fields.beams = json_bool(value).value_or(false);
  } else if (key == "beam_width" || key == "num_beams") {
    fields.beams = json_count(value).value_or(1) > 1;
  }
}

void read_option(std::string_view key, JsonValue& value, Fields& fields, RequestFacts& facts) {
  if (key == "model") {
    facts.model = read_model(value);
  } else if (key == "stream") {
    facts.streamed = json_bool(value).value_or(facts.streamed);
  } else if (key == "n" || key == "n_cmpl") {
    fields.choices = json_count(value).value_or(1);
  } else if (key == "echo") {
    facts.echo = json_bool(value).value_or(false);
  } else if (key == "max_tokens" || key == "max_completion_tokens") {
    fields.tokens_max = json_count(value);
  } else if (key == "add_generation_prompt") {
    fields.generation_prompt = json_bool(value).value_or(true);
  } else if (key == "format") {
    facts.constrained = starts_with(value, '{') || !json_raw_string(value).value_or(std::string_view{}).empty();
  } else if (key == "sampling_params" || key == "parameters") {
    json_each_field_of(value, [&](std::string_view name, JsonValue& field) {
      if (name == "n" && key == "sampling_params") fields.choices = json_count(field).value_or(1);
      read_candidates(name, field, fields);
    });
  } else {
    read_candidates(key, value, fields);
  }
}

}  // namespace

RequestFacts read_request_body(JsonFrame& frame, bool streamed) {
  RequestFacts facts;
  facts.streamed = streamed;
  Fields fields;
  json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (!read_prompt_field(key, value, fields)) read_option(key, value, fields, facts);
  });
  const Prompt& prompt = fields.prompt;
  const Messages& messages = fields.messages;
  facts.empty_prompt = prompt.characters == 0 && prompt.ids == 0 && messages.count == 0;
  facts.prompt_characters = prompt.characters + messages.characters + fields.other_characters;
  facts.echo_only = facts.echo && messages.count == 0 && fields.tokens_max == std::uint64_t{0};
  // vLLM repeats the last message where the answer goes on with it: where it has the role of the answer.
  const bool continues = messages.last_is_assistant || !fields.generation_prompt;
  if (facts.echo && continues) facts.echoed_characters = messages.last_characters;
  if (prompt.ids != 0 && prompt.texts == 0) facts.prompt_tokens = prompt.ids;
  // Strings in a list are prompts of their own; beside ids they are parts of one.
  const std::uint64_t prompts = prompt.lists + (prompt.ids != 0 && prompt.lists == 0 ? 1 : prompt.texts);
  facts.prompts = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(prompts, 1, kSequencesMax));
  const std::uint64_t sequences = facts.prompts * std::clamp<std::uint64_t>(fields.choices, 1, kSequencesMax);
  facts.sequences = static_cast<std::uint32_t>(std::min(sequences, kSequencesMax));
  facts.hidden_choices = fields.beams || fields.candidates > fields.choices;
  return facts;
}

}  // namespace rooflined::tap
