// llama-server of 2025 and later: the role comes in the same write as the first token, `timings` on the last frame of a
// stream always, `usage` on /v1/completions always and on chats when asked for.

#include "tests/simulator/dialects.h"
#include "tests/simulator/openai_frames.h"

#include <algorithm>
#include <utility>

namespace rooflined::simulator {
namespace {

constexpr std::string_view kBuild = "b10488-5eae9cb4";

Json timings(const Response& response) {
  const double prompt_ms = response.prefill_seconds * 1e3;
  const double predicted_ms = response.decode_seconds * 1e3;
  const auto per_second = [](std::uint64_t tokens, double ms) {
    return ms > 0 ? Json(static_cast<double>(tokens) * 1e3 / ms) : Json(nullptr);
  };
  const std::uint64_t intervals = std::max<std::uint64_t>(response.generated, 2) - 1;
  Json body = {{"cache_n", 0},
               {"prompt_n", response.request.prompt_tokens},
               {"prompt_ms", prompt_ms},
               {"prompt_per_token_ms", prompt_ms / static_cast<double>(response.request.prompt_tokens)},
               {"prompt_per_second", per_second(response.request.prompt_tokens, prompt_ms)},
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
  body["system_fingerprint"] = kBuild;
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
  bool has_native_routes() const override { return true; }

  std::vector<std::string> token_writes(const Response& response) const override {
    const std::string_view text = token_text(response.generated);
    if (response.request.route == Route::kNative) return {frame(native_frame(response, text))};
    if (response.request.route == Route::kCompletions) return {frame(choice_body(response, text, nullptr))};
    std::string write;
    if (response.generated == 1) {
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
    const std::string text = whole_text(response.generated);
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

  std::string models_body(const ServerFacts& facts) const override {
    const Json model = {{"id", facts.model.name},
                        {"object", "model"},
                        {"created", facts.started_at},
                        {"owned_by", "llamacpp"},
                        {"meta",
                         {{"n_ctx_train", kContextMax},
                          {"n_params", static_cast<std::uint64_t>(facts.model.parameters)},
                          {"size", facts.model.tensor_bytes}}}};
    return Json{{"object", "list"}, {"data", Json::array({model})}}.dump();
  }

  std::string props_body(const ServerFacts& facts) const override {
    const std::string& path = facts.model.path.empty() ? facts.model.name : facts.model.path;
    return Json{{"default_generation_settings", {{"n_ctx", kContextMax}}},
                {"total_slots", facts.batch_max},
                {"model_alias", facts.model.name},
                {"model_path", path},
                {"modalities", {{"vision", false}, {"audio", false}}},
                {"endpoint_slots", false},
                {"endpoint_props", false},
                {"endpoint_metrics", false},
                {"chat_template", ""},
                {"build_info", kBuild},
                {"is_sleeping", false}}
        .dump();
  }
};

}  // namespace

std::unique_ptr<Dialect> make_llama_cpp_dialect() {
  return std::make_unique<LlamaCppDialect>();
}

}  // namespace rooflined::simulator
