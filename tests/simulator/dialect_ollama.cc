// Ollama: lines of JSON on its own routes with the totals on the last one, and OpenAI's routes beside them.
//
// Its engine is llama.cpp: each token has its line, also where a pass yielded several.

#include "tests/simulator/dialects.h"
#include "tests/simulator/openai_frames.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <utility>

namespace rooflined::simulator {
namespace {

Json nanoseconds(double seconds) {
  return static_cast<std::uint64_t>(std::llround(seconds * 1e9));
}

std::string date_text(std::int64_t unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

Json native_line(const Response& response, std::string_view text) {
  Json body = {{"model", response.model}, {"created_at", date_text(response.created)}};
  if (response.request.route == Route::kOllamaChat) {
    body["message"] = {{"role", "assistant"}, {"content", text}};
  } else {
    body["response"] = text;
  }
  body["done"] = false;
  return body;
}

Json native_end(const Response& response, std::string_view text) {
  Json body = native_line(response, text);
  body["done"] = true;
  body["done_reason"] = "length";
  body["total_duration"] = nanoseconds(response.prefill_seconds + response.decode_seconds);
  body["prompt_eval_count"] = response.request.prompt_tokens;
  body["prompt_eval_duration"] = nanoseconds(response.prefill_seconds);
  body["eval_count"] = response.generated;
  body["eval_duration"] = nanoseconds(response.decode_seconds);
  return body;
}

// Of OpenAI's routes.
Json envelope(const Response& response, bool chunk) {
  return {{"id", fmt::format("chatcmpl-{}", response.id % 999)},  // as it numbers them: not unique
          {"object", object_name(response, chunk)},
          {"created", response.created},
          {"model", response.model},
          {"system_fingerprint", "fp_ollama"}};
}

std::string choice_frame(const Response& response, std::string_view text, bool finish) {
  Json choice = {{"index", 0}};
  if (response.request.route == Route::kChat) {
    choice["delta"] = {{"role", "assistant"}, {"content", text}};
  } else {
    choice["text"] = text;
  }
  choice["finish_reason"] = finish ? Json("length") : Json(nullptr);
  Json body = envelope(response, true);
  body["choices"] = Json::array({std::move(choice)});
  return frame(body);
}

class OllamaDialect final : public Dialect {
 public:
  std::string_view server() const override { return ""; }
  std::string_view version() const override { return "0.12.6"; }
  bool pass_is_frame() const override { return false; }

  std::vector<RoutePath> routes() const override {
    return {{"/api/chat", Route::kOllamaChat},
            {"/api/generate", Route::kOllamaGenerate},
            {"/v1/chat/completions", Route::kChat},
            {"/v1/completions", Route::kCompletions}};
  }

  std::vector<std::string> token_writes(const Response& response, std::uint64_t tokens) const override {
    const std::string text = newest_text(response, tokens);
    if (is_ollama(response.request.route)) return {native_line(response, text).dump() + "\n"};
    return {choice_frame(response, text, false)};
  }

  std::string end_write(const Response& response) const override {
    if (is_ollama(response.request.route)) return native_end(response, "").dump() + "\n";
    std::string write = choice_frame(response, "", true);
    if (response.request.include_usage) {
      Json body = envelope(response, true);
      body["choices"] = Json::array();
      body["usage"] = usage(response);
      write += frame(body);
    }
    return write += kDoneFrame;
  }

  std::string whole_body(const Response& response) const override {
    const std::string text = whole_text(response);
    if (is_ollama(response.request.route)) return native_end(response, text).dump();
    Json choice = {{"index", 0}};
    if (response.request.route == Route::kChat) {
      choice["message"] = {{"role", "assistant"}, {"content", text}};
    } else {
      choice["text"] = text;
    }
    choice["finish_reason"] = "length";
    Json body = envelope(response, false);
    body["choices"] = Json::array({std::move(choice)});
    body["usage"] = usage(response);
    return body.dump();
  }

  std::vector<Page> pages(const ServerFacts& facts) const override {
    const Json running = {{"name", facts.model.name},
                          {"model", facts.model.name},
                          {"size", facts.model.tensor_bytes},
                          {"size_vram", 0},
                          {"context_length", kContextMax}};
    const Json listed = {{"name", facts.model.name}, {"model", facts.model.name}, {"size", facts.model.tensor_bytes}};
    return {{"/v1/models", model_list(listed_model(facts, "library"))},
            {"/api/version", Json{{"version", facts.version}}.dump()},
            {"/api/ps", Json{{"models", Json::array({running})}}.dump()},
            {"/api/tags", Json{{"models", Json::array({listed})}}.dump()}};
  }
};

}  // namespace

std::unique_ptr<Dialect> make_ollama_dialect() {
  return std::make_unique<OllamaDialect>();
}

}  // namespace rooflined::simulator
