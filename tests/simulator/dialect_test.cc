#include "tests/simulator/dialect.h"

#include "tests/simulator/answer_reader.h"
#include "tests/support/catch.h"

#include <nlohmann/json.hpp>

#include <vector>

namespace rooflined::simulator {
namespace {

Response response_for(Route route, bool include_usage) {
  Response response;
  response.request = {route, true, include_usage, 9, 3};
  response.id = 5;
  response.model = "m";
  response.prefill_seconds = 0.25;
  return response;
}

std::vector<std::string> stream_of(const Dialect& dialect, Response response) {
  std::vector<std::string> writes;
  for (response.generated = 1; response.generated <= response.request.output_tokens; ++response.generated) {
    response.decode_seconds = 0.01 * static_cast<double>(response.generated - 1);
    for (std::string& write : dialect.token_writes(response)) writes.push_back(std::move(write));
  }
  response.generated = response.request.output_tokens;
  writes.push_back(dialect.end_write(response));
  return writes;
}

TEST_CASE("a client counts every token of every dialect and route") {
  const std::string name = GENERATE(from_range(dialect_names()));
  const Route route = GENERATE(Route::kChat, Route::kCompletions, Route::kNative);
  const bool include_usage = GENERATE(false, true);
  const auto dialect = make_dialect(name);
  if (route == Route::kNative && !dialect->has_native_routes()) return;
  CAPTURE(name, static_cast<int>(route), include_usage);
  AnswerReader answer(true);
  for (const std::string& write : stream_of(*dialect, response_for(route, include_usage))) {
    CHECK(answer.read(write) <= 1);
  }
  CHECK(answer.tokens() == 3);
  CHECK(answer.finish());
  if (include_usage) {
    CHECK(answer.total_tokens() == 3U);
    CHECK(answer.prompt_tokens() == 9U);
  }

  Response whole = response_for(route, false);
  whole.generated = 3;
  AnswerReader body(false);
  body.read(dialect->whole_body(whole));
  CHECK(body.finish());
  CHECK(body.total_tokens() == 3U);
}

TEST_CASE("openai: a role frame of its own, usage only when asked for") {
  const auto dialect = make_dialect("openai");
  const auto writes = stream_of(*dialect, response_for(Route::kChat, false));
  REQUIRE(writes.size() == 5);
  CHECK(writes[0].find(R"("role":"assistant")") != std::string::npos);
  CHECK(writes[4].find("usage") == std::string::npos);
  CHECK(writes[4].ends_with("data: [DONE]\n\n"));
}

TEST_CASE("llama.cpp: the role beside the first token, timings on the last frame") {
  const auto dialect = make_dialect("llama.cpp");
  const auto writes = stream_of(*dialect, response_for(Route::kChat, false));
  REQUIRE(writes.size() == 4);
  CHECK(writes[0].find(R"("role":"assistant")") != std::string::npos);
  CHECK(writes[0].find(R"("system_fingerprint":"b)") != std::string::npos);
  CHECK(writes[3].find("usage") == std::string::npos);
  CHECK(writes[3].find(R"("prompt_n":9)") != std::string::npos);
  CHECK(writes[3].find(R"("predicted_n":3,"predicted_ms":20.0)") != std::string::npos);
}

TEST_CASE("llama.cpp native: cumulative counts on each frame, and no [DONE]") {
  const auto dialect = make_dialect("llama.cpp");
  const auto writes = stream_of(*dialect, response_for(Route::kNative, false));
  REQUIRE(writes.size() == 4);
  CHECK(writes[1].find(R"("tokens_predicted":2,"tokens_evaluated":9)") != std::string::npos);
  CHECK(writes[3].find(R"("stop":true)") != std::string::npos);
  CHECK(writes[3].find("[DONE]") == std::string::npos);
}

TEST_CASE("llama.cpp tells where its model is") {
  const auto dialect = make_dialect("llama.cpp");
  ServerFacts facts;
  facts.model.name = "m.gguf";
  facts.model.path = "/models/m.gguf";
  facts.model.tensor_bytes = 12345;
  const auto props = nlohmann::json::parse(dialect->props_body(facts));
  CHECK(props["model_path"] == "/models/m.gguf");
  CHECK(props["build_info"].get<std::string>().starts_with('b'));
  const auto models = nlohmann::json::parse(dialect->models_body(facts));
  CHECK(models["data"][0]["owned_by"] == "llamacpp");
  CHECK(models["data"][0]["meta"]["size"] == 12345);
}

TEST_CASE("an unknown dialect is none") {
  CHECK(make_dialect("nonsense") == nullptr);
}

}  // namespace
}  // namespace rooflined::simulator
