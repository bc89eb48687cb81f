#include "tests/simulator/request_body.h"

#include "tests/simulator/openai_frames.h"

namespace rooflined::simulator {
namespace {

std::string prompt_of(std::uint64_t words, std::uint64_t number) {
  std::string prompt = text_between(1 + number, words + number);
  return prompt.empty() ? prompt : prompt.substr(1);
}

}  // namespace

std::string request_body(const GenerationRequest& request, std::uint64_t number) {
  const std::string prompt = prompt_of(request.prompt_tokens, number);
  Json body = {{"stream", request.stream}};
  if (is_chat(request.route)) {
    body["messages"] = Json::array({{{"role", "user"}, {"content", prompt}}});
  } else {
    body["prompt"] = prompt;
  }
  if (is_ollama(request.route)) {
    body["options"]["num_predict"] = request.output_tokens;
    return body.dump();
  }
  body["ignore_eos"] = true;
  body[request.route == Route::kNative ? "n_predict" : "max_tokens"] = request.output_tokens;
  if (request.stream && request.include_usage && request.route != Route::kNative) {
    body["stream_options"] = {{"include_usage", true}};
  }
  return body.dump();
}

}  // namespace rooflined::simulator
