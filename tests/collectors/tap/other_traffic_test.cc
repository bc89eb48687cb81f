// What an exchange says of the server behind the port: that it is none of ours, or nothing.

#include "collectors/tap/other_traffic.h"

#include "collectors/tap/exchange_factory.h"
#include "tests/support/transcript.h"

#include "tests/support/catch.h"

#include <memory>
#include <span>
#include <string>

namespace rooflined::tap {
namespace {

struct Visits final : OtherTrafficSink {
  unsigned count = 0;
  void on_other_traffic(const Endpoint&, LineTime) override { ++count; }
};

class Conversation {
 public:
  Conversation() : factory_(recorder_, HttpLimits(), &visits_), handler_(factory_.open(ConnectionInfo())) {}

  void says(Direction direction, const std::string& text) {
    if (handler_->lost_interest()) return;
    handler_->on_bytes(direction, std::as_bytes(std::span(text)), transcript_time(at_ += 10));
  }
  unsigned visits() const { return visits_.count; }
  bool let_go() const { return handler_->lost_interest(); }

 private:
  ExchangeRecorder recorder_;
  Visits visits_;
  ExchangeFactory factory_;
  std::unique_ptr<ConnectionHandler> handler_;
  int at_ = 0;
};

std::string post(const std::string& path) {
  return "POST " + path + " HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
}
const std::string kPage = "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 2\r\n\r\nok";

}  // namespace

TEST_CASE("a page is other traffic, a path of an inference server is none") {
  Conversation page;
  page.says(Direction::kToServer, "GET /index.html HTTP/1.1\r\n\r\n");
  page.says(Direction::kToClient, kPage);
  CHECK(page.visits() == 1);
  Conversation models;
  models.says(Direction::kToServer, "GET /v1/models HTTP/1.1\r\n\r\n");
  models.says(Direction::kToClient, kPage);
  CHECK(models.visits() == 0);
}

TEST_CASE("TLS is other traffic") {
  Conversation hello;
  hello.says(Direction::kToServer,
             std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(64, 'x'));
  CHECK(hello.let_go());
  CHECK(hello.visits() == 1);
}

TEST_CASE("a client that asks too much at once says nothing of the server") {
  Conversation greedy;
  for (std::size_t i = 0; i <= HttpLimits().pipelined_requests_max; ++i) {
    CHECK_FALSE(greedy.let_go());
    greedy.says(Direction::kToServer, post("/v1/chat/completions"));
  }
  CHECK(greedy.let_go());
  CHECK(greedy.visits() == 0);
}

}  // namespace rooflined::tap
