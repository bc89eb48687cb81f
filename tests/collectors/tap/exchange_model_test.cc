// Which model an exchange is of: as the request names it, else as the first frame of the response does; a hash only.

#include "metrics/exchange.h"
#include "tests/support/transcript.h"

#include "tests/support/catch.h"

#include <string>
#include <vector>

namespace rooflined::tap {
namespace {

class ModelSink final : public ExchangeSink {
 public:
  std::vector<std::uint64_t> models;

  void on_begin(const ExchangeBegin& begin) override { models.push_back(begin.model); }
  void on_recognised(ExchangeId, ServerFamily, std::string_view) override {}
  void on_tokens(const TokenEvent&) override {}
  void on_prompt_tokens(ExchangeId, std::uint64_t, LineTime) override {}
  void on_response_id(ExchangeId, std::uint64_t, LineTime) override {}
  void on_client_window(ExchangeId, bool, LineTime) override {}
  void on_loss(ExchangeId, double, LineTime) override {}
  void on_end(const ExchangeEnd&) override {}
};

std::string request(const std::string& route, const std::string& body) {
  return fmt::format("POST {} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", route,
                     body.size(), body);
}

const std::string kChatAnswer =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    "data: {\"object\":\"chat.completion.chunk\",\"model\":\"answer\",\"choices\":[{\"index\":0,\"delta\":"
    "{\"content\":\"a\"}}]}\n\n";
const std::string kOllamaAnswer =
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"
    "{\"model\":\"answer\",\"message\":{\"role\":\"assistant\",\"content\":\"a\"},\"done\":false}\n";

// The model of the one exchange; `asked` empty: the capture began behind the request.
std::uint64_t model_of(const std::string& asked, const std::string& answer) {
  Transcript transcript;
  transcript.joined_late = asked.empty();
  TranscriptStep step;
  step.bytes = asked;
  if (!asked.empty()) transcript.steps.push_back(step);
  step.direction = Direction::kToClient;
  step.at = transcript_time(10);
  step.bytes = answer;
  transcript.steps.push_back(step);
  ModelSink sink;
  play_transcript(transcript, sink, [](const TranscriptStep& each) { return std::vector{each.bytes.size()}; });
  REQUIRE(sink.models.size() == 1);
  return sink.models.front();
}

TEST_CASE("the request's word goes before the response's") {
  const std::uint64_t asked = model_name_hash("asked");
  CHECK(model_of(request("/v1/chat/completions", R"({"model":"asked","messages":[{"role":"user","content":"x"}]})"),
                 kChatAnswer) == asked);
  CHECK(model_of(request("/api/chat", R"({"messages":[{"role":"user","content":"x"}],"model":"asked:latest"})"),
                 kOllamaAnswer) == asked);
  CHECK(model_of(request("/completion", R"({"prompt":"x","model":"asked"})"), kChatAnswer) == asked);
}

TEST_CASE("a request that names none, or whose name is no name, says nothing") {
  CHECK(model_of(request("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}]})"), kChatAnswer) == 0);
  CHECK(model_of(request("/v1/chat/completions", R"({"model":"","messages":[]})"), kChatAnswer) == 0);
  CHECK(model_of(request("/v1/chat/completions", R"({"model":7,"messages":[]})"), kChatAnswer) == 0);
}

TEST_CASE("a request too long to be read says it in front") {
  const std::string image(2 * HttpLimits().request_body_bytes_max, 'x');
  CHECK(model_of(request("/v1/chat/completions", R"({"model":"asked","messages":[{"content":")" + image + R"("}]})"),
                 kChatAnswer) == model_name_hash("asked"));
}

TEST_CASE("joined late: the first frame says it") {
  CHECK(model_of("", kChatAnswer) == model_name_hash("answer"));
  CHECK(model_of("", kOllamaAnswer) == model_name_hash("answer"));
}

}  // namespace
}  // namespace rooflined::tap
