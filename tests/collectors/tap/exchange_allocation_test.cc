// A steady stream allocates nothing, and a connection that waits holds little.

#include "collectors/tap/dialect_table.h"
#include "collectors/tap/exchange_factory.h"
#include "tests/support/allocation_watch.h"
#include "tests/support/transcript.h"

#include "tests/support/catch.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::tap {
namespace {

struct Counter final : ExchangeSink {
  std::uint64_t tokens = 0;
  void on_begin(const ExchangeBegin&) override {}
  void on_recognised(ExchangeId, ServerFamily, std::string_view) override {}
  void on_tokens(const TokenEvent& event) override { tokens += event.tokens; }
  void on_prompt_tokens(ExchangeId, std::uint64_t, LineTime) override {}
  void on_response_id(ExchangeId, std::uint64_t, LineTime) override {}
  void on_client_window(ExchangeId, bool, LineTime) override {}
  void on_loss(ExchangeId, double, LineTime) override {}
  void on_end(const ExchangeEnd&) override {}
};

void feed(ConnectionHandler& handler, Direction direction, std::string_view text, double ms) {
  handler.on_bytes(direction, std::as_bytes(std::span<const char>(text)), transcript_time(ms));
}

const std::string kData =
    "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"content\":\" "
    "word\"}}],\"created\":1795988478,"
    "\"id\":\"chatcmpl-blldDN8AIN8D4Yi4ihiwNfny66EDC5m9\",\"model\":\"gpt-3.5-turbo\",\"system_fingerprint\":\"b4748-"
    "c392e5094\","
    "\"object\":\"chat.completion.chunk\"}\n\n";

// A stream of each dialect: the path and the body of its request, and a frame of it.
struct Stream {
  std::string_view name;
  std::string_view path;
  std::string_view media_type;
  std::string frame;
};

const std::vector<Stream> kStreams = {
    {"openai_chat", "/v1/chat/completions", "text/event-stream", kData},
    {"openai_completions", "/v1/completions", "text/event-stream",
     "data: {\"id\":\"cmpl-12345678\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\" word\","
     "\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n"},
    {"llamacpp_native", "/completion", "text/event-stream",
     "data: {\"index\":0,\"content\":\" word\",\"tokens\":[7],\"stop\":false,\"id_slot\":0}\n\n"},
    {"ollama", "/api/chat", "application/x-ndjson",
     "{\"model\":\"m\",\"created_at\":\"2026-01-01T00:00:00.000000Z\",\"message\":{\"role\":\"assistant\",\"content\":"
     "\" "
     "word\"},\"done\":false}\n"},
    {"anthropic", "/v1/messages", "text/event-stream",
     "event: content_block_delta\ndata: "
     "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
     "\"text\":\" word\"}}\n\n"},
    {"responses", "/v1/responses", "text/event-stream",
     "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\" word\"}\n\n"},
    {"sglang_native", "/generate", "text/event-stream",
     "data: {\"text\":\" word\",\"output_ids\":[1,2],\"meta_info\":{\"id\":\"aabbccdd00112233\"}}\n\n"},
    {"tgi", "/generate_stream", "text/event-stream",
     "data:{\"index\":1,\"token\":{\"id\":338,\"text\":\" "
     "word\",\"logprob\":-0.1,\"special\":false},\"generated_text\":null}"
     "\n\n"},
    {"kobold", "/api/extra/generate/stream", "text/event-stream",
     "event: message\ndata: {\"token\":\" word\",\"finish_reason\":null}\n\n"},
    {"lmstudio", "/api/v1/chat", "text/event-stream",
     "event: message.delta\ndata: {\"type\":\"message.delta\",\"content\":\" word\"}\n\n"},
    {"triton", "/v2/models/m/generate_stream", "text/event-stream",
     "data: {\"model_name\":\"m\",\"model_version\":\"1\",\"text_output\":\" word\"}\n\n"},
};

}  // namespace

TEST_CASE("a steady stream of any dialect allocates nothing") {
  REQUIRE(kStreams.size() == dialects().size());
  for (const Stream& stream : kStreams) {
    INFO(stream.name);
    REQUIRE(dialect_of_route(stream.path).dialect->name == stream.name);
    Counter counter;
    ExchangeFactory factory(counter);
    const auto handler = factory.open({});
    constexpr std::string_view kBody = "{\"stream\":true,\"prompt\":\"hi\"}";
    const std::string frame = fmt::format("{:x}\r\n{}\r\n", stream.frame.size(), stream.frame);
    feed(*handler, Direction::kToServer,
         fmt::format("POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", stream.path, kBody.size(), kBody), 0);
    feed(*handler, Direction::kToClient,
         fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n", stream.media_type),
         1);
    for (int i = 0; i < 10; ++i) feed(*handler, Direction::kToClient, frame, 2);
    const std::string start = frame.substr(0, frame.size() / 2);
    const std::string rest = frame.substr(frame.size() / 2);
    // Cut in two as well: the buffer for that is made once.
    for (int i = 0; i < 2; ++i) {
      feed(*handler, Direction::kToClient, start, 2);
      feed(*handler, Direction::kToClient, rest, 2);
    }
    test::watch_allocations();
    for (int i = 0; i < 1000; ++i) feed(*handler, Direction::kToClient, frame, 3);
    for (int i = 0; i < 1000; ++i) {
      feed(*handler, Direction::kToClient, start, 3);
      feed(*handler, Direction::kToClient, rest, 3);
    }
    const test::Allocations seen = test::allocations();
    CHECK(seen.total == 0);
    CHECK(counter.tokens == 2012);
  }
}

TEST_CASE("a large frame takes a bounded multiple of its size, and a big body no more than its bound") {
  Counter counter;
  ExchangeFactory factory(counter);
  const auto handler = factory.open({});
  feed(*handler, Direction::kToServer, "POST /completion HTTP/1.1\r\nContent-Length: 1000000000000\r\n\r\n", 0);
  const std::string piece(64 * 1024, 'x');
  test::watch_allocations();
  for (int i = 0; i < 256; ++i) feed(*handler, Direction::kToServer, piece, 1);
  CHECK(test::allocations().largest <= 1024 * 1024 + 64 * 1024);
}

}  // namespace rooflined::tap
