// OpenAI's routes as OpenAI, vLLM and SGLang send their frames: what these have in common, and where they differ.
//
// vLLM puts the finish reason beside the last token, SGLang so on completions only. Both put the tokens of one pass
// into one frame. vLLM tells its version on the frame with the totals, its drafts there too (with per-request metrics),
// and with --enable-force-include-usage the tokens so far on every frame.

#include "tests/simulator/dialects.h"
#include "tests/simulator/openai_frames.h"

#include <fmt/format.h>

#include <utility>

namespace rooflined::simulator {
namespace {

enum class Family : std::uint8_t { kOpenAi, kVllm, kSglang };

Json envelope(const Response& response, bool chunk) {
  return {{"id", response_id(response)},
          {"object", object_name(response, chunk)},
          {"created", response.created},
          {"model", response.model}};
}

class OpenAiDialect final : public Dialect {
 public:
  explicit OpenAiDialect(Family family, bool counts_on_frames = false)
      : family_(family), counts_on_frames_(counts_on_frames) {}

  std::string_view server() const override { return family_ == Family::kOpenAi ? "rooflined-sim" : "uvicorn"; }
  std::string_view version() const override {
    switch (family_) {
      case Family::kVllm:
        return "0.11.0";
      case Family::kSglang:
        return "0.5.4";
      case Family::kOpenAi:
        break;
    }
    return "";
  }
  bool pass_is_frame() const override { return family_ != Family::kOpenAi; }

  std::vector<RoutePath> routes() const override {
    return {{"/v1/chat/completions", Route::kChat}, {"/v1/completions", Route::kCompletions}};
  }

  std::vector<std::string> token_writes(const Response& response, std::uint64_t tokens) const override {
    const std::string text = newest_text(response, tokens);
    const bool last = response.finished && finish_has_token(response);
    if (response.request.route != Route::kChat) return {choice_frame(response, text, last)};
    std::vector<std::string> writes;
    if (response.generated == tokens) {
      Response before = response;
      before.generated = 0;
      writes.push_back(choice_frame(before, {{"role", "assistant"}, {"content", ""}}, false));
    }
    writes.push_back(choice_frame(response, {{"content", text}}, last));
    return writes;
  }

  std::string end_write(const Response& response) const override {
    std::string write;
    if (!finish_has_token(response)) {
      const bool chat = response.request.route == Route::kChat;
      write = choice_frame(response, chat ? Json::object() : Json(""), true);
    }
    if (response.request.include_usage || counts_on_frames_) {
      Json body = envelope(response, true);
      body["choices"] = Json::array();
      body["usage"] = usage(response);
      add_vllm_facts(response, body);
      write += frame(body);
    }
    return write += kDoneFrame;
  }

  std::string whole_body(const Response& response) const override {
    Json choice = {{"index", 0}};
    if (response.request.route == Route::kChat) {
      choice["message"] = {{"role", "assistant"}, {"content", whole_text(response)}};
    } else {
      choice["text"] = whole_text(response);
    }
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = "length";
    Json body = envelope(response, false);
    body["choices"] = Json::array({std::move(choice)});
    body["usage"] = usage(response);
    add_vllm_facts(response, body);
    return body.dump();
  }

  std::vector<Page> pages(const ServerFacts& facts) const override {
    switch (family_) {
      case Family::kVllm:
        return {{"/v1/models", model_list(listed_model(facts, "vllm"))},
                {"/version", Json{{"version", facts.version}}.dump()}};
      case Family::kSglang:
        return {{"/v1/models", model_list(listed_model(facts, "sglang"))},
                {"/model_info", Json{{"model_path", model_root(facts.model)}, {"is_generation", true}}.dump()}};
      case Family::kOpenAi:
        break;
    }
    return {{"/v1/models", model_list(listed_model(facts, "rooflined-sim"))}};
  }

 private:
  bool finish_has_token(const Response& response) const {
    return family_ == Family::kVllm || (family_ == Family::kSglang && response.request.route != Route::kChat);
  }

  std::string choice_frame(const Response& response, Json content, bool finish) const {
    const bool chat = response.request.route == Route::kChat;
    if (chat && family_ == Family::kSglang) content["reasoning_content"] = nullptr;
    Json choice = {{"index", 0}, {chat ? "delta" : "text", std::move(content)}, {"logprobs", nullptr}};
    choice["finish_reason"] = finish ? Json("length") : Json(nullptr);
    if (family_ == Family::kSglang) choice["matched_stop"] = nullptr;
    Json body = envelope(response, true);
    if (family_ == Family::kOpenAi && !response.version.empty()) body["system_fingerprint"] = response.version;
    body["choices"] = Json::array({std::move(choice)});
    if (family_ == Family::kSglang) body["usage"] = nullptr;
    if (counts_on_frames_) body["usage"] = usage(response);
    return frame(body);
  }

  void add_vllm_facts(const Response& response, Json& body) const {
    if (family_ != Family::kVllm) return;
    body["system_fingerprint"] = fmt::format("vllm-{}-tp1-5eae9cb4", response.version);
    if (response.drafted == 0) return;
    body["metrics"]["speculative_decoding"] = {{"num_draft_tokens", response.drafted},
                                               {"num_accepted_draft_tokens", response.accepted}};
  }

  Family family_;
  bool counts_on_frames_;
};

}  // namespace

std::unique_ptr<Dialect> make_openai_dialect() {
  return std::make_unique<OpenAiDialect>(Family::kOpenAi);
}
std::unique_ptr<Dialect> make_vllm_dialect() {
  return std::make_unique<OpenAiDialect>(Family::kVllm);
}
std::unique_ptr<Dialect> make_vllm_force_usage_dialect() {
  return std::make_unique<OpenAiDialect>(Family::kVllm, true);
}
std::unique_ptr<Dialect> make_sglang_dialect() {
  return std::make_unique<OpenAiDialect>(Family::kSglang);
}

}  // namespace rooflined::simulator
