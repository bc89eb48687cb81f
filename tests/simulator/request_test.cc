#include "tests/simulator/request.h"

#include "tests/support/catch.h"

#include <string>

namespace rooflined::simulator {
namespace {

TEST_CASE("the length of a prompt is its number of words or ids") {
  struct Row {
    Route route;
    const char* body;
    std::uint64_t prompt_tokens;
  };
  const Row row = GENERATE(values<Row>({
      {Route::kChat, R"({"messages":[{"role":"system","content":"a b"},{"role":"user","content":"c"}]})", 3},
      {Route::kChat, R"({"messages":[{"role":"user","content":[{"type":"text","text":"a b"},{"type":"x"}]}]})", 2},
      {Route::kChat, R"({"messages":[{"role":"user","content":""}]})", 1},
      {Route::kCompletions, R"({"prompt":"  one\ntwo\tthree "})", 3},
      {Route::kCompletions, R"({"prompt":[1,2,3,4]})", 4},
      {Route::kNative, R"({"prompt":"one"})", 1},
  }));
  CAPTURE(row.body);
  const auto request = read_request(row.route, row.body);
  REQUIRE(request.ok());
  CHECK(request->prompt_tokens == row.prompt_tokens);
  CHECK(request->output_tokens == kOutputTokensDefault);
  CHECK_FALSE(request->stream);
}

TEST_CASE("limits and flags are read under every name") {
  const auto chat = read_request(Route::kChat,
                                 R"({"messages":[{"role":"user","content":"a"}],"max_completion_tokens":7,"stream":true,
                                     "stream_options":{"include_usage":true}})");
  REQUIRE(chat.ok());
  CHECK(chat->output_tokens == 7);
  CHECK(chat->stream);
  CHECK(chat->include_usage);
  const auto native = read_request(Route::kNative, R"({"prompt":"a","n_predict":-1})");
  REQUIRE(native.ok());
  CHECK(native->output_tokens == kOutputTokensDefault);
  const auto long_one = read_request(Route::kNative, R"({"prompt":"a","n_predict":99999999})");
  REQUIRE(long_one.ok());
  CHECK(long_one->output_tokens == kContextMax - 1);
}

TEST_CASE("what cannot be served is refused") {
  const char* const body =
      GENERATE("", "[]", "{", R"({"prompt":5})", R"({"prompt":["a","b"]})", R"({})", R"({"prompt":"a","n":2})");
  CAPTURE(body);
  CHECK_FALSE(read_request(Route::kCompletions, body).ok());
  CHECK_FALSE(read_request(Route::kChat, body).ok());
}

TEST_CASE("a prompt as long as the context is refused") {
  std::string prompt;
  for (std::uint64_t i = 0; i < kContextMax; ++i) prompt += "a ";
  CHECK_FALSE(read_request(Route::kCompletions, R"({"prompt":")" + prompt + R"("})").ok());
}

}  // namespace
}  // namespace rooflined::simulator
