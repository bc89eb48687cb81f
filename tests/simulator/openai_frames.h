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
std::string whole_text(std::uint64_t tokens);
Json usage(const Response& response);
// "chatcmpl-…" or "cmpl-…".
std::string response_id(const Response& response);
// The object's name: "chat.completion.chunk", "text_completion", …
std::string_view object_name(const Response& response, bool chunk);

}  // namespace rooflined::simulator
