// The doorbell on loopback, with real sockets. Needs CAP_NET_RAW; without it the cases say so and pass.

#include "collectors/tap/doorbell.h"

#include "tests/collectors/tap/loopback_pair.h"
#include "tests/support/catch.h"

#include <sched.h>

#include <chrono>
#include <future>
#include <initializer_list>
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

namespace {

// Where the doorbell's thread may run once it was kept off these CPUs, one after the other.
cpu_set_t cpus_after(std::initializer_list<cpu_set_t> kept_off) {
  test::LoopbackPair pair(false);
  cpu_set_t found;
  CPU_ZERO(&found);
  const auto doorbell = open_on(pair.port);
  if (doorbell == nullptr) return found;
  REQUIRE(pair.connect());
  std::promise<void> promise;
  doorbell->listen([&](const Result<CaptureTime>&) {
    ::sched_getaffinity(0, sizeof found, &found);
    promise.set_value();
  });
  for (const cpu_set_t& cpus : kept_off) doorbell->keep_off(cpus);
  pair.ask("POST /completion HTTP/1.1\r\n\r\n");
  promise.get_future().wait();
  return found;
}

}  // namespace

TEST_CASE("its thread keeps off the CPUs of the probe, as long as there are others", "[doorbell]") {
  cpu_set_t all;
  REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
  cpu_set_t none;
  CPU_ZERO(&none);
  if (const cpu_set_t found = cpus_after({none}); CPU_COUNT(&found) > 0) {
    CHECK(CPU_EQUAL(&found, &all));
  } else {
    return;  // said above
  }
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one = none;
  CPU_SET(first, &one);
  const cpu_set_t others = cpus_after({one});
  if (CPU_COUNT(&all) > 1) {
    CHECK_FALSE(CPU_ISSET(first, &others));
    CHECK(CPU_COUNT(&others) == CPU_COUNT(&all) - 1);
  }
  const cpu_set_t again = cpus_after({one, all});
  CHECK(CPU_EQUAL(&again, &all));
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
