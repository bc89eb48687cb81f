// llama-server of 2025 and later: the role comes in the same write as the first token, `timings` on the last frame of a
// stream always, `usage` on /v1/completions always and on chats when asked for.

#include "tests/simulator/dialects.h"
#include "tests/simulator/openai_frames.h"

#include <algorithm>
#include <utility>

namespace rooflined::simulator {
namespace {

Json timings(const Response& response) {
  const double prompt_ms = response.prefill_seconds * 1e3;
  const double predicted_ms = response.decode_seconds * 1e3;
  const auto per_second = [](std::uint64_t tokens, double ms) {
    return ms > 0 ? Json(static_cast<double>(tokens) * 1e3 / ms) : Json(nullptr);
  };
  const std::uint64_t prompt_n = response.request.prompt_tokens - response.cached_tokens;
  const std::uint64_t intervals = std::max<std::uint64_t>(response.generated, 2) - 1;
  Json body = {{"cache_n", response.cached_tokens},
               {"prompt_n", prompt_n},
               {"prompt_ms", prompt_ms},
               {"prompt_per_token_ms", prompt_ms / static_cast<double>(prompt_n)},
               {"prompt_per_second", per_second(prompt_n, prompt_ms)},
               {"predicted_n", response.generated},
               {"predicted_ms", predicted_ms},
               {"predicted_per_token_ms", predicted_ms / static_cast<double>(intervals)},
               {"predicted_per_second", per_second(intervals, predicted_ms)}};
  if (response.drafted > 0) {
    body["draft_n"] = response.drafted;
    body["draft_n_accepted"] = response.accepted;
  }
  return body;
}

Json close_envelope(Json body, const Response& response, bool chunk) {
  body["created"] = response.created;
  body["model"] = response.model;
  body["system_fingerprint"] = response.version;
  body["object"] = object_name(response, chunk);
  body["id"] = response_id(response);
  return body;
}

Json choice_body(const Response& response, Json content, const char* finish_reason) {
  const Json finish = finish_reason != nullptr ? Json(finish_reason) : Json(nullptr);
  Json choice;
  if (response.request.route == Route::kChat) {
    choice = {{"finish_reason", finish}, {"index", 0}, {"delta", std::move(content)}};
  } else {
    choice = {{"text", std::move(content)}, {"index", 0}, {"logprobs", nullptr}, {"finish_reason", finish}};
  }
  return close_envelope({{"choices", Json::array({std::move(choice)})}}, response, true);
}

Json native_frame(const Response& response, std::string_view text) {
  return {{"index", 0},
          {"content", text},
          {"tokens", Json::array({response.generated % 32000})},
          {"stop", false},
          {"id_slot", -1},
          {"tokens_predicted", response.generated},
          {"tokens_evaluated", response.request.prompt_tokens}};
}

Json native_end(const Response& response, std::string_view text) {
  return {{"index", 0},
          {"content", text},
          {"tokens", Json::array()},
          {"id_slot", 0},
          {"stop", true},
          {"model", response.model},
          {"tokens_predicted", response.generated},
          {"tokens_evaluated", response.request.prompt_tokens},
          {"has_new_line", false},
          {"truncated", false},
          {"stop_type", "limit"},
          {"stopping_word", ""},
          {"tokens_cached", response.request.prompt_tokens + response.generated - 1},
          {"timings", timings(response)}};
}

class LlamaCppDialect final : public Dialect {
 public:
  std::string_view server() const override { return "llama.cpp"; }
  std::string_view version() const override { return "b10488-5eae9cb4"; }
  bool pass_is_frame() const override { return false; }

  std::vector<RoutePath> routes() const override {
    return {{"/v1/chat/completions", Route::kChat},
            {"/v1/completions", Route::kCompletions},
            {"/chat/completions", Route::kChat},
            {"/completion", Route::kNative}};
  }

  std::vector<std::string> token_writes(const Response& response, std::uint64_t tokens) const override {
    const std::string text = newest_text(response, tokens);
    if (response.request.route == Route::kNative) return {frame(native_frame(response, text))};
    if (response.request.route == Route::kCompletions) return {frame(choice_body(response, text, nullptr))};
    std::string write;
    if (response.generated == tokens) {
      write = frame(choice_body(response, {{"role", "assistant"}, {"content", nullptr}}, nullptr));
    }
    return {write += frame(choice_body(response, {{"content", text}}, nullptr))};
  }

  std::string end_write(const Response& response) const override {
    if (response.request.route == Route::kNative) return frame(native_end(response, ""));
    const bool chat = response.request.route == Route::kChat;
    Json last = choice_body(response, chat ? Json::object() : Json(""), "length");
    std::string write;
    if (chat && response.request.include_usage) {
      write = frame(last);
      last = close_envelope({{"choices", Json::array()}}, response, true);
    }
    if (!chat || response.request.include_usage) last["usage"] = usage(response);
    last["timings"] = timings(response);
    write += frame(last);
    return write += kDoneFrame;
  }

  std::string whole_body(const Response& response) const override {
    const std::string text = whole_text(response);
    if (response.request.route == Route::kNative) return native_end(response, text).dump();
    Json choice = {{"finish_reason", "length"}, {"index", 0}};
    if (response.request.route == Route::kChat) {
      choice["message"] = {{"role", "assistant"}, {"content", text}};
    } else {
      choice["text"] = text;
      choice["logprobs"] = nullptr;
    }
    Json body = close_envelope({{"choices", Json::array({std::move(choice)})}}, response, false);
    body["usage"] = usage(response);
    body["timings"] = timings(response);
    return body.dump();
  }

  std::vector<Page> pages(const ServerFacts& facts) const override {
    const Json model = {{"id", facts.model.name},
                        {"object", "model"},
                        {"created", facts.started_at},
                        {"owned_by", "llamacpp"},
                        {"meta",
                         {{"n_ctx_train", kContextMax},
                          {"n_params", static_cast<std::uint64_t>(facts.model.parameters)},
                          {"size", facts.model.tensor_bytes}}}};
    const Json props = {{"default_generation_settings", {{"n_ctx", kContextMax}}},
                        {"total_slots", facts.batch_max},
                        {"model_alias", facts.model.name},
                        {"model_path", model_root(facts.model)},
                        {"modalities", {{"vision", false}, {"audio", false}}},
                        {"endpoint_slots", false},
                        {"endpoint_props", false},
                        {"endpoint_metrics", false},
                        {"chat_template", ""},
                        {"build_info", facts.version},
                        {"is_sleeping", false}};
    return {{"/v1/models", model_list(model)}, {"/props", props.dump()}};
  }
};

}  // namespace

std::unique_ptr<Dialect> make_llama_cpp_dialect() {
  return std::make_unique<LlamaCppDialect>();
}

}  // namespace rooflined::simulator
