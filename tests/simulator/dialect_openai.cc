#include "tests/simulator/dialects.h"

#include "tests/simulator/openai_frames.h"

#include <utility>

namespace rooflined::simulator {
namespace {

Json envelope(const Response& response, bool chunk) {
  return {{"id", response_id(response)},
          {"object", object_name(response, chunk)},
          {"created", response.created},
          {"model", response.model}};
}

std::string choice_frame(const Response& response, Json content, const char* finish_reason) {
  const bool chat = response.request.route == Route::kChat;
  Json choice = {{"index", 0}, {chat ? "delta" : "text", std::move(content)}, {"logprobs", nullptr}};
  choice["finish_reason"] = finish_reason != nullptr ? Json(finish_reason) : Json(nullptr);
  Json body = envelope(response, true);
  body["choices"] = Json::array({std::move(choice)});
  return frame(body);
}

class OpenAiDialect final : public Dialect {
 public:
  std::string_view server() const override { return "rooflined-sim"; }
  bool has_native_routes() const override { return false; }

  std::vector<std::string> token_writes(const Response& response) const override {
    const std::string text(token_text(response.generated));
    if (response.request.route != Route::kChat) return {choice_frame(response, text, nullptr)};
    std::vector<std::string> writes;
    if (response.generated == 1) {
      writes.push_back(choice_frame(response, {{"role", "assistant"}, {"content", ""}}, nullptr));
    }
    writes.push_back(choice_frame(response, {{"content", text}}, nullptr));
    return writes;
  }

  std::string end_write(const Response& response) const override {
    const bool chat = response.request.route == Route::kChat;
    std::string write = choice_frame(response, chat ? Json::object() : Json(""), "length");
    if (response.request.include_usage) {
      Json body = envelope(response, true);
      body["choices"] = Json::array();
      body["usage"] = usage(response);
      write += frame(body);
    }
    return write += kDoneFrame;
  }

  std::string whole_body(const Response& response) const override {
    Json choice = {{"index", 0}};
    if (response.request.route == Route::kChat) {
      choice["message"] = {{"role", "assistant"}, {"content", whole_text(response.generated)}};
    } else {
      choice["text"] = whole_text(response.generated);
    }
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = "length";
    Json body = envelope(response, false);
    body["choices"] = Json::array({std::move(choice)});
    body["usage"] = usage(response);
    return body.dump();
  }

  std::string models_body(const ServerFacts& facts) const override {
    const Json model = {{"id", facts.model.name},
                        {"object", "model"},
                        {"created", facts.started_at},
                        {"owned_by", "rooflined-sim"},
                        {"root", facts.model.path.empty() ? facts.model.name : facts.model.path},
                        {"max_model_len", kContextMax}};
    return Json{{"object", "list"}, {"data", Json::array({model})}}.dump();
  }

  std::string props_body(const ServerFacts& /*facts*/) const override { return {}; }
};

}  // namespace

std::unique_ptr<Dialect> make_openai_dialect() {
  return std::make_unique<OpenAiDialect>();
}

}  // namespace rooflined::simulator
