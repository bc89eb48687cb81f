#include "tests/simulator/request.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <string>

namespace rooflined::simulator {
namespace {

using nlohmann::json;

Error bad(const char* detail) {
  return Error{ErrorCode::kInvalid, "", detail};
}

std::uint64_t count_words(const std::string& text) {
  std::uint64_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!space && !inside) ++words;
    inside = !space;
  }
  return words;
}

// A text, or a list of parts of which the ones with a text count.
std::uint64_t count_content(const json& content) {
  if (content.is_string()) return count_words(content.get_ref<const std::string&>());
  std::uint64_t words = 0;
  if (!content.is_array()) return words;
  for (const json& part : content) {
    if (part.is_object() && part.contains("text") && part["text"].is_string()) {
      words += count_words(part["text"].get_ref<const std::string&>());
    }
  }
  return words;
}

Result<std::uint64_t> count_messages(const json& request) {
  const auto messages = request.find("messages");
  if (messages == request.end() || !messages->is_array() || messages->empty()) return bad("messages: a list is needed");
  std::uint64_t words = 0;
  for (const json& message : *messages) {
    if (!message.is_object()) return bad("messages: a list of objects is needed");
    if (message.contains("content")) words += count_content(message["content"]);
  }
  return words;
}

Result<std::uint64_t> count_prompt(const json& request) {
  const auto prompt = request.find("prompt");
  if (prompt == request.end()) return bad("prompt: needed");
  if (prompt->is_string()) return count_words(prompt->get_ref<const std::string&>());
  if (!prompt->is_array()) return bad("prompt: a text or a list of token ids is needed");
  for (const json& id : *prompt) {
    if (!id.is_number_integer()) return bad("prompt: one text, or one list of token ids, is needed");
  }
  return static_cast<std::uint64_t>(prompt->size());
}

bool flag(const json& object, const char* key, bool otherwise = false) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

void read_limit(const json& object, std::initializer_list<const char*> keys, std::uint64_t& output_tokens) {
  for (const char* key : keys) {
    const auto limit = object.find(key);
    if (limit == object.end() || !limit->is_number_integer()) continue;
    if (const auto tokens = limit->get<std::int64_t>(); tokens >= 1) output_tokens = static_cast<std::uint64_t>(tokens);
  }
}

}  // namespace

Result<GenerationRequest> read_request(Route route, std::string_view body) {
  const json document = json::parse(body, nullptr, false);
  if (!document.is_object()) return bad("the body must be a JSON object");
  const auto counted = is_chat(route) ? count_messages(document) : count_prompt(document);
  if (!counted) return counted.error();

  GenerationRequest request;
  request.route = route;
  request.prompt_tokens = std::max<std::uint64_t>(*counted, 1);
  if (request.prompt_tokens >= kContextMax) return bad("the prompt is longer than the context");
  request.stream = flag(document, "stream", is_ollama(route));
  const auto stream_options = document.find("stream_options");
  request.include_usage =
      stream_options != document.end() && stream_options->is_object() && flag(*stream_options, "include_usage");
  read_limit(document, {"n_predict", "max_tokens", "max_completion_tokens"}, request.output_tokens);
  const auto options = document.find("options");
  if (is_ollama(route) && options != document.end() && options->is_object()) {
    read_limit(*options, {"num_predict"}, request.output_tokens);
  }
  const auto choices = document.find("n");
  if (choices != document.end() && choices->is_number_integer() && choices->get<std::int64_t>() != 1) {
    return bad("n: only 1 is supported");
  }
  request.output_tokens = std::min(request.output_tokens, kContextMax - request.prompt_tokens);
  return request;
}

}  // namespace rooflined::simulator
