// Reads a generation request: which route, how long a prompt, how many tokens to bear.
//
// A prompt's length is its number of words (or ids): one word is one token in this engine.

#pragma once

#include "metrics/base/result.h"

#include <cstdint>
#include <string_view>

namespace rooflined::simulator {

enum class Route : std::uint8_t {
  kChat,            // /v1/chat/completions
  kCompletions,     // /v1/completions
  kNative,          // /completion of llama.cpp
  kOllamaChat,      // /api/chat
  kOllamaGenerate,  // /api/generate
};

constexpr std::uint64_t kContextMax = 131072;
constexpr std::uint64_t kOutputTokensDefault = 128;

constexpr bool is_chat(Route route) {
  return route == Route::kChat || route == Route::kOllamaChat;
}
constexpr bool is_ollama(Route route) {
  return route == Route::kOllamaChat || route == Route::kOllamaGenerate;
}

struct GenerationRequest {
  Route route = Route::kChat;
  bool stream = false;
  bool include_usage = false;
  std::uint64_t prompt_tokens = 1;
  std::uint64_t output_tokens = kOutputTokensDefault;
};

// Requires nothing of `body`. Errors are for the client, with status 400.
Result<GenerationRequest> read_request(Route route, std::string_view body);

}  // namespace rooflined::simulator
