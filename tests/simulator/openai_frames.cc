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

}  // namespace

std::string frame(const Json& body) {
  return fmt::format("data: {}\n\n", body.dump());
}

std::string_view token_text(std::uint64_t index) {
  // A multiplier prime to the list's length walks through all of it without looking sorted.
  return kWords[static_cast<std::size_t>(index * 7 % kWords.size())];
}

std::string whole_text(std::uint64_t tokens) {
  std::string text;
  for (std::uint64_t index = 1; index <= tokens; ++index) text += token_text(index);
  return text;
}

Json usage(const Response& response) {
  return {{"prompt_tokens", response.request.prompt_tokens},
          {"total_tokens", response.request.prompt_tokens + response.generated},
          {"completion_tokens", response.generated}};
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
