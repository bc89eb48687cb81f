#include "tests/simulator/answer_reader.h"

#include <nlohmann/json.hpp>

namespace rooflined::simulator {
namespace {

using nlohmann::json;

bool has_text(const json& object) {
  for (const char* key : {"content", "text", "reasoning_content", "reasoning", "response"}) {
    const auto found = object.find(key);
    if (found != object.end() && found->is_string() && !found->get_ref<const std::string&>().empty()) return true;
  }
  return false;
}

bool carries_text(const json& event) {
  if (has_text(event)) return true;            // llama.cpp's own
  const auto message = event.find("message");  // Ollama's own
  if (message != event.end() && message->is_object() && has_text(*message)) return true;
  const auto choices = event.find("choices");
  if (choices == event.end() || !choices->is_array() || choices->empty() || !choices->front().is_object()) return false;
  const json& choice = choices->front();
  if (has_text(choice)) return true;
  const auto delta = choice.find("delta");
  return delta != choice.end() && delta->is_object() && has_text(*delta);
}

void take_count(const json& object, const char* key, std::optional<std::uint64_t>& count) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number_unsigned()) count = found->get<std::uint64_t>();
}

}  // namespace

std::uint64_t AnswerReader::read(std::string_view bytes) {
  if (broken_) return 0;
  pending_.append(bytes);
  broken_ = pending_.size() > kPendingBytesMax;
  if (!stream_) return 0;
  const std::uint64_t before = tokens_;
  std::size_t from = 0;
  for (std::size_t end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n', from)) {
    std::string_view line = std::string_view(pending_).substr(from, end - from);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("data:")) read_event(line.substr(line.starts_with("data: ") ? 6 : 5));
    if (line.starts_with('{')) read_event(line);
    from = end + 1;
  }
  pending_.erase(0, from);
  return tokens_ - before;
}

bool AnswerReader::finish() {
  if (!stream_) read_event(pending_);
  return !broken_ && (ended_ || !stream_);
}

void AnswerReader::read_event(std::string_view data) {
  if (data == "[DONE]") {
    ended_ = true;
    return;
  }
  const json event = json::parse(data, nullptr, false);
  if (!event.is_object() || event.contains("error")) {
    broken_ = true;
    return;
  }
  if (carries_text(event)) ++tokens_;
  const auto stop = event.find("stop");
  if (stop != event.end() && stop->is_boolean() && stop->get<bool>()) {
    ended_ = true;  // llama.cpp's own streams have no [DONE]
    take_count(event, "tokens_predicted", total_tokens_);
    take_count(event, "tokens_evaluated", prompt_tokens_);
  }
  const auto done = event.find("done");
  if (done != event.end() && done->is_boolean() && done->get<bool>()) {
    ended_ = true;  // Ollama's neither
    take_count(event, "eval_count", total_tokens_);
    take_count(event, "prompt_eval_count", prompt_tokens_);
  }
  const auto usage = event.find("usage");
  if (usage == event.end() || !usage->is_object()) return;
  take_count(*usage, "completion_tokens", total_tokens_);
  take_count(*usage, "prompt_tokens", prompt_tokens_);
}

}  // namespace rooflined::simulator
