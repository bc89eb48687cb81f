#include "tests/simulator/openai_frames.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <random>

namespace rooflined::simulator {
namespace {

constexpr std::array<std::string_view, 16> kWords = {" alpha", " bravo",    " charlie", " delta",  " echo", " foxtrot",
                                                     " golf",  " hotel",    " india",   " juliet", " kilo", " lima",
                                                     " mike",  " november", " oscar",   " papa"};

// Answers differ from each other in every word: the same text at the same time on two ports would look like one stream
// seen twice. The mixing is that of splitmix64.
std::string_view answer_word(std::uint64_t response, std::uint64_t index) {
  std::uint64_t mixed = (response << 32) + index * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return kWords[static_cast<std::size_t>((mixed ^ mixed >> 31) % kWords.size())];
}

std::string answer_text(const Response& response, std::uint64_t first) {
  std::string text;
  for (std::uint64_t index = first; index <= response.generated; ++index) text += answer_word(response.id, index);
  return text;
}

}  // namespace

std::string frame(const Json& body) {
  return fmt::format("data: {}\n\n", body.dump());
}

std::string_view token_text(std::uint64_t index) {
  // A multiplier prime to the list's length walks through all of it without looking sorted.
  return kWords[static_cast<std::size_t>(index * 7 % kWords.size())];
}

std::string text_between(std::uint64_t first, std::uint64_t last) {
  std::string text;
  for (std::uint64_t index = first; index <= last; ++index) text += token_text(index);
  return text;
}

std::string newest_text(const Response& response, std::uint64_t tokens) {
  return answer_text(response, response.generated - tokens + 1);
}

std::string whole_text(const Response& response) {
  return answer_text(response, 1);
}

Json usage(const Response& response) {
  Json body = {{"prompt_tokens", response.request.prompt_tokens},
               {"total_tokens", response.request.prompt_tokens + response.generated},
               {"completion_tokens", response.generated}};
  if (response.cached_tokens > 0) body["prompt_tokens_details"] = {{"cached_tokens", response.cached_tokens}};
  return body;
}

Json listed_model(const ServerFacts& facts, std::string_view owner) {
  return {{"id", facts.model.name},          {"object", "model"},
          {"created", facts.started_at},     {"owned_by", owner},
          {"root", model_root(facts.model)}, {"max_model_len", kContextMax}};
}

std::string model_list(const Json& model) {
  return Json{{"object", "list"}, {"data", Json::array({model})}}.dump();
}

const std::string& model_root(const Model& model) {
  return model.path.empty() ? model.name : model.path;
}

std::string response_id(const Response& response) {
  // Unique over all servers, as real ones make them.
  static const std::uint64_t server = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  return fmt::format("{}-{:016x}{:016x}", response.request.route == Route::kChat ? "chatcmpl" : "cmpl", server,
                     response.id);
}

std::string_view object_name(const Response& response, bool chunk) {
  if (response.request.route != Route::kChat) return "text_completion";
  return chunk ? "chat.completion.chunk" : "chat.completion";
}

}  // namespace rooflined::simulator
