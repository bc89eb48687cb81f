// A steady stream allocates nothing, and a connection that waits holds little.

#include "collectors/tap/exchange_factory.h"
#include "tests/support/allocation_watch.h"
#include "tests/support/transcript.h"

#include "tests/support/catch.h"

#include <cstdint>
#include <string>

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
  void on_loss(ExchangeId, LineTime) override {}
  void on_end(const ExchangeEnd&) override {}
};

void feed(ConnectionHandler& handler, Direction direction, std::string_view text, double ms) {
  handler.on_bytes(direction, std::as_bytes(std::span<const char>(text)), transcript_time(ms));
}

const std::string kRequest = "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 15\r\n\r\n{\"stream\":true}";
const std::string kHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kData =
    "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"content\":\" "
    "word\"}}],\"created\":1795988478,"
    "\"id\":\"chatcmpl-blldDN8AIN8D4Yi4ihiwNfny66EDC5m9\",\"model\":\"gpt-3.5-turbo\",\"system_fingerprint\":\"b4748-"
    "c392e5094\","
    "\"object\":\"chat.completion.chunk\"}\n\n";

}  // namespace

TEST_CASE("a steady stream allocates nothing") {
  Counter counter;
  ExchangeFactory factory(counter);
  const auto handler = factory.open({});
  const std::string frame = fmt::format("{:x}\r\n{}\r\n", kData.size(), kData);
  feed(*handler, Direction::kToServer, kRequest, 0);
  feed(*handler, Direction::kToClient, kHead, 1);
  for (int i = 0; i < 10; ++i) feed(*handler, Direction::kToClient, frame, 2);
  // Cut in two as well: the buffer for that is made once.
  for (int i = 0; i < 2; ++i) {
    feed(*handler, Direction::kToClient, frame.substr(0, 100), 2);
    feed(*handler, Direction::kToClient, std::string_view(frame).substr(100), 2);
  }
  const std::string start = frame.substr(0, 60);
  const std::string rest = frame.substr(60);
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
