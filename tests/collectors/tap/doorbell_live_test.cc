// The doorbell on loopback, with real sockets. Needs CAP_NET_RAW; without it the cases say so and pass.

#include "collectors/tap/doorbell.h"

#include "tests/collectors/tap/loopback_pair.h"
#include "tests/support/catch.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>

namespace rooflined::tap {

namespace {

using namespace std::chrono_literals;

std::unique_ptr<Doorbell> open_on(std::uint16_t port) {
  auto doorbell = Doorbell::open({.ports = {port}});
  if (!doorbell && doorbell.error().code == ErrorCode::kDenied) {
    WARN(doorbell.error().message());
    return nullptr;
  }
  REQUIRE(doorbell);
  return std::move(doorbell).value();
}

CaptureTime wall_now() {
  return CaptureTime(std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()));
}

void check_request(bool version6, bool new_connection) {
  INFO((version6 ? "IPv6" : "IPv4") << (new_connection ? ", new connection" : ", kept alive"));
  test::LoopbackPair pair(version6);
  if (pair.port == 0) {
    WARN("no such address here");
    return;
  }
  if (!new_connection) REQUIRE(pair.connect());
  auto doorbell = open_on(pair.port);
  if (doorbell == nullptr) return;
  std::promise<Result<CaptureTime>> promise;
  auto rung = promise.get_future();
  doorbell->listen([&](const Result<CaptureTime>& at) { promise.set_value(at); });
  if (new_connection) REQUIRE(pair.connect());
  pair.ask("GET /health HTTP/1.1\r\n\r\n");
  pair.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  CHECK(rung.wait_for(50ms) == std::future_status::timeout);
  const CaptureTime before = wall_now();
  pair.ask("POST /completion HTTP/1.1\r\n\r\n");
  REQUIRE(rung.wait_for(10s) == std::future_status::ready);
  const auto at = rung.get();
  REQUIRE(at);
  CHECK(at.value() >= before);
  CHECK(at.value() <= wall_now());
  pair.ask("POST /completion HTTP/1.1\r\n\r\n");  // answers once: a second promise would throw
}

}  // namespace

TEST_CASE("a request rings, a health check does not", "[doorbell]") {
  for (const bool version6 : {false, true}) {
    for (const bool new_connection : {false, true}) check_request(version6, new_connection);
  }
}

TEST_CASE("what came between opening and listening rings, too", "[doorbell]") {
  test::LoopbackPair pair(false);
  const auto doorbell = open_on(pair.port);
  if (doorbell == nullptr) return;
  REQUIRE(pair.connect());
  pair.ask("POST /completion HTTP/1.1\r\n\r\n");
  std::promise<bool> promise;
  doorbell->listen([&](const Result<CaptureTime>& at) { promise.set_value(at.ok()); });
  auto rung = promise.get_future();
  REQUIRE(rung.wait_for(10s) == std::future_status::ready);
  CHECK(rung.get());
}

TEST_CASE("a doorbell that nobody rings closes, listening or not", "[doorbell]") {
  test::LoopbackPair pair(false);
  auto doorbell = open_on(pair.port);
  if (doorbell == nullptr) return;
  doorbell.reset();
  doorbell = open_on(pair.port);
  doorbell->listen([](const Result<CaptureTime>&) { FAIL("nobody rang"); });
  doorbell.reset();
}

TEST_CASE("an interface that is not there is an error", "[doorbell]") {
  CHECK_FALSE(Doorbell::open({.interface = "no-such-interface", .ports = {8080}}).ok());
}

}  // namespace rooflined::tap
