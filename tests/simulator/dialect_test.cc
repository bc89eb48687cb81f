#include "tests/simulator/dialect.h"

#include "tests/simulator/answer_reader.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rooflined::simulator {
namespace {

Response response_for(Route route, bool include_usage) {
  Response response;
  response.request = {route, true, include_usage, 9, 3};
  response.id = 5;
  response.model = "m";
  response.version = "b1-a";
  response.prefill_seconds = 0.25;
  return response;
}

std::vector<std::string> stream_of(const Dialect& dialect, Response response) {
  std::vector<std::string> writes;
  for (response.generated = 1; response.generated <= response.request.output_tokens; ++response.generated) {
    response.decode_seconds = 0.01 * static_cast<double>(response.generated - 1);
    response.finished = response.generated == response.request.output_tokens;
    for (std::string& write : dialect.token_writes(response, 1)) writes.push_back(std::move(write));
  }
  response.generated = response.request.output_tokens;
  writes.push_back(dialect.end_write(response));
  return writes;
}

TEST_CASE("a client counts every token of every dialect and route") {
  const std::string name = GENERATE(from_range(dialect_names()));
  const Route route =
      GENERATE(Route::kChat, Route::kCompletions, Route::kNative, Route::kOllamaChat, Route::kOllamaGenerate);
  const bool include_usage = GENERATE(false, true);
  const auto dialect = make_dialect(name);
  const std::vector<RoutePath> routes = dialect->routes();
  if (std::ranges::find(routes, route, &RoutePath::route) == routes.end()) return;
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

nlohmann::json page(const Dialect& dialect, const ServerFacts& facts, const std::string& path) {
  for (const Page& one : dialect.pages(facts)) {
    if (one.path == path) return nlohmann::json::parse(one.body);
  }
  return nullptr;
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
  facts.version = "b1-a";
  const auto props = page(*dialect, facts, "/props");
  CHECK(props["model_path"] == "/models/m.gguf");
  CHECK(props["build_info"] == "b1-a");
  const auto models = page(*dialect, facts, "/v1/models");
  CHECK(models["data"][0]["owned_by"] == "llamacpp");
  CHECK(models["data"][0]["meta"]["size"] == 12345);
}

TEST_CASE("vllm: the finish reason beside the last token, all tokens of a pass in one frame, its version at the end") {
  const auto dialect = make_dialect("vllm");
  Response response = response_for(Route::kChat, true);
  response.version = "9.9";
  response.generated = 3;
  response.finished = true;
  response.drafted = 8;
  response.accepted = 2;
  CHECK(dialect->pass_is_frame());
  const auto writes = dialect->token_writes(response, 2);
  REQUIRE(writes.size() == 1);
  CHECK(writes[0].find(R"("finish_reason":"length")") != std::string::npos);
  const auto frame = nlohmann::json::parse(writes[0].substr(6));
  const std::string text = frame["choices"][0]["delta"]["content"];
  CHECK(std::ranges::count(text, ' ') == 2);
  const std::string end = dialect->end_write(response);
  CHECK(end.find(R"("finish_reason")") == std::string::npos);
  CHECK(end.find(R"("system_fingerprint":"vllm-9.9-)") != std::string::npos);
  CHECK(end.find(R"("num_accepted_draft_tokens":2)") != std::string::npos);
}

TEST_CASE("ollama: a line for each token and the totals on the last") {
  const auto dialect = make_dialect("ollama");
  const auto writes = stream_of(*dialect, response_for(Route::kOllamaChat, false));
  REQUIRE(writes.size() == 4);
  for (const std::string& write : writes) CHECK(write.ends_with("}\n"));
  const auto last = nlohmann::json::parse(writes[3]);
  CHECK(last["done"] == true);
  CHECK(last["eval_count"] == 3);
  CHECK(last["prompt_eval_count"] == 9);
  CHECK(last["eval_duration"] == 20'000'000);
}

TEST_CASE("every dialect names its model where the daemon looks for it") {
  const std::string name = GENERATE(from_range(dialect_names()));
  ServerFacts facts;
  facts.model.name = "m";
  CHECK(page(*make_dialect(name), facts, "/v1/models")["data"][0]["id"] == "m");
}

TEST_CASE("an unknown dialect is none") {
  CHECK(make_dialect("nonsense") == nullptr);
}

}  // namespace
}  // namespace rooflined::simulator
