// The parts of OpenAI's frames that its imitators share.

#pragma once

#include "tests/simulator/dialect.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace rooflined::simulator {

// Keys in the order of writing, as real servers have them.
using Json = nlohmann::ordered_json;

inline constexpr std::string_view kDoneFrame = "data: [DONE]\n\n";

std::string frame(const Json& body);
// The text of the `index`-th output token (from 1): a word with a leading space.
std::string_view token_text(std::uint64_t index);
// That of tokens first…last.
std::string text_between(std::uint64_t first, std::uint64_t last);
// Of the newest `tokens` tokens of a response, or of all.
std::string newest_text(const Response& response, std::uint64_t tokens);
std::string whole_text(const Response& response);
Json usage(const Response& response);
// One entry of /v1/models as vLLM and its like have it.
Json listed_model(const ServerFacts& facts, std::string_view owner);
std::string model_list(const Json& model);
// Where the model's weights are: its path, else its name.
const std::string& model_root(const Model& model);
// "chatcmpl-…" or "cmpl-…".
std::string response_id(const Response& response);
// The object's name: "chat.completion.chunk", "text_completion", …
std::string_view object_name(const Response& response, bool chunk);

}  // namespace rooflined::simulator
