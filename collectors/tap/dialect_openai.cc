#include "collectors/tap/dialect_openai.h"

#include <algorithm>
#include <functional>

namespace rooflined::tap {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::optional<std::uint64_t> positive(std::optional<std::uint64_t> count) {
  return count && *count != 0 ? count : std::nullopt;
}

void read_usage(JsonValue& value, OpenAiTotals& totals) {
  json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    if (key == "completion_tokens") totals.usage_completion = positive(json_count(field));
    if (key == "prompt_tokens") totals.usage_prompt = positive(json_count(field));
    // The names of the newer routes, in an older one's frames.
    if (key == "output_tokens") totals.usage_output = positive(json_count(field));
    if (key == "input_tokens") totals.usage_input = positive(json_count(field));
  });
}

void read_choice_usage(JsonValue& value, ChoiceFacts& choice, OpenAiTotals& totals) {
  OpenAiTotals own;
  read_usage(value, own);
  if (own.usage_completion) choice.cumulative = own.usage_completion;
  if (own.usage_prompt) totals.usage_prompt = own.usage_prompt;
}

void read_timings(JsonValue& value, OpenAiTotals& totals, FrameFacts& facts) {
  std::optional<std::uint64_t> prompt;
  std::optional<std::uint64_t> cached;
  const bool object = json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    if (key == "predicted_n") {
      totals.timings_predicted = positive(json_count(field));
    } else if (key == "prompt_n") {
      prompt = json_count(field);
    } else if (key == "cache_n") {
      cached = json_count(field);
    } else if (key == "draft_n") {
      facts.draft_tokens = json_count(field);
    } else if (key == "draft_n_accepted") {
      facts.draft_tokens_accepted = json_count(field);
    }
  });
  if (object || totals.timings_predicted) facts.family = ServerFamily::kLlamaCpp;
  // Before `cache_n` existed, `prompt_n` alone left out what came from the cache: then it is no length.
  if (prompt && cached) totals.timings_prompt = positive(*prompt + *cached);
}

void read_metrics(JsonValue& value, FrameFacts& facts) {
  json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    if (key != "speculative_decoding") return;
    json_each_field_of(field, [&](std::string_view name, JsonValue& count) {
      if (name == "num_draft_tokens") facts.draft_tokens = json_count(count);
      if (name == "num_accepted_draft_tokens") facts.draft_tokens_accepted = json_count(count);
    });
  });
}

void read_fingerprint(JsonValue& value, FrameFacts& facts) {
  const std::string_view text = json_raw_string(value).value_or(std::string_view{});
  if (text == "fp_ollama") {
    facts.family = ServerFamily::kOllama;
  } else if (text.starts_with("vllm-")) {
    facts.family = ServerFamily::kVllm;
    const std::string_view rest = text.substr(5);
    facts.version.assign(rest.substr(0, rest.find('-')));
  } else if (text.size() > 2 && text[0] == 'b' && is_digit(text[1])) {
    // b<build>-<commit or packager>
    const std::size_t dash = text.find('-');
    const std::string_view build = text.substr(1, dash == std::string_view::npos ? 0 : dash - 1);
    if (build.empty() || !std::all_of(build.begin(), build.end(), is_digit)) return;
    facts.family = ServerFamily::kLlamaCpp;
    facts.version.assign(text);
  }
}

namespace {

// Ollama numbers its answers chatcmpl-0 to -998, KoboldCpp calls all of its own "koboldcpp": no key to anything.
bool is_unique(std::string_view id) {
  constexpr std::size_t kOwnPartMin = 8;
  constexpr std::size_t kWholeMin = 20;
  const std::size_t prefix = id.find_first_of("-_");
  const bool long_part = prefix != std::string_view::npos && id.size() - prefix - 1 >= kOwnPartMin;
  return long_part || id.size() >= kWholeMin;
}

}  // namespace

void read_response_id(JsonValue& value, FrameFacts& facts) {
  if (!facts.wants_response_id || facts.response_id) return;
  const std::optional<std::string_view> id = json_raw_string(value);
  if (!id || !is_unique(*id)) return;
  facts.response_id = std::hash<std::string_view>()(*id);
}

std::uint64_t read_model(JsonValue& value) {
  const std::string_view name = json_raw_string(value).value_or(std::string_view{});
  return name.empty() ? 0 : model_name_hash(name);
}

bool read_text(JsonValue& value, ChoiceFacts& choice) {
  const auto raw = json_raw_string(value);
  if (!raw) return false;
  if (raw->empty()) {
    choice.empty_text = true;
    return false;
  }
  choice.has_text = true;
  ++choice.texts;
  choice.text = *raw;
  choice.characters += json_characters(*raw);
  return true;
}

void read_function(JsonValue& value, ChoiceFacts& choice) {
  JsonObject function;
  if (value.get_object().get(function) != simdjson::SUCCESS) return;
  json_each_field(function, [&](std::string_view key, JsonValue& field) {
    if (key == "name" || key == "arguments" || key == "input") read_text(field, choice);
  });
}

void read_tool_calls(JsonValue& value, ChoiceFacts& choice) {
  json_each_item(value, [&](JsonValue& item) {
    JsonObject call;
    if (item.get_object().get(call) != simdjson::SUCCESS) return;
    json_each_field(call, [&](std::string_view key, JsonValue& field) {
      if (key == "function" || key == "custom") read_function(field, choice);
    });
  });
}

void read_index(JsonValue& value, ChoiceFacts& choice) {
  const auto index = json_count(value);
  if (index && *index <= 0xffffffffU) choice.index = static_cast<std::uint32_t>(*index);
}

void read_error(JsonValue& value, FrameFacts& facts) {
  facts.error = facts.error || !json_is_null(value);
}

void read_finish_reason(JsonValue& value, ChoiceFacts& choice, FrameFacts& facts) {
  const auto reason = json_raw_string(value);
  if (!reason || reason->empty()) return;
  choice.finished = true;
  facts.error = facts.error || *reason == "error";
  facts.aborted = facts.aborted || *reason == "abort";
}

void read_logprobs(JsonValue& value, ChoiceFacts& choice) {
  json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    // chat: content[] (and refusal[]) of objects; completions: tokens[] of strings
    if (key == "content" || key == "refusal" || key == "tokens") choice.logprobs += json_array_size(field);
  });
}

bool read_choice_field(std::string_view key, JsonValue& value, ChoiceFacts& choice, FrameFacts& facts) {
  if (key == "index") {
    read_index(value, choice);
  } else if (key == "finish_reason") {
    read_finish_reason(value, choice, facts);
  } else if (key == "logprobs") {
    read_logprobs(value, choice);
  } else if (key == "token_ids" || key == "output_ids") {
    choice.ids += json_array_size(value);
  } else if (key == "matched_stop") {
    facts.family = ServerFamily::kSglang;
  } else if (key == "avg_decoded_tokens_per_iter") {
    facts.family = ServerFamily::kTensorRtLlm;
  } else {
    return false;
  }
  return true;
}

OpenAiObject openai_object_of(JsonValue& value) {
  const std::string_view text = json_raw_string(value).value_or(std::string_view{});
  if (text == "chat.completion.chunk" || text == "chat.completion") return OpenAiObject::kChat;
  if (text == "text_completion") return OpenAiObject::kCompletion;
  if (text == "error") return OpenAiObject::kError;
  return OpenAiObject::kOther;
}

void place_totals(const OpenAiTotals& totals, FrameFacts& facts) {
  facts.prompt_tokens = totals.usage_prompt ? totals.usage_prompt : totals.timings_prompt;
  if (!facts.prompt_tokens) facts.prompt_tokens = totals.usage_input;
  auto count = totals.timings_predicted ? totals.timings_predicted : totals.usage_completion;
  if (!count) count = totals.usage_output;
  if (!count) return;
  if (facts.choices.size() == 1) {
    facts.choices.front().cumulative = count;
    return;
  }
  facts.total = count;
  // llama.cpp ends each of several choices with such a frame of its own; everybody else sends one for all.
  const bool of_one = totals.timings_predicted && facts.choices.empty();
  facts.scope = of_one ? TotalScope::kLastFinished : TotalScope::kSum;
}

}  // namespace rooflined::tap
