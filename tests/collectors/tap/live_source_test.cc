// Goal: what two sockets say to each other on loopback comes out of a live capture, byte for byte, large segments
// included. Needs CAP_NET_RAW; without it the cases say so and pass.

#include "collectors/tap/local_host.h"
#include "collectors/tap/packet_source.h"
#include "collectors/tap/tap.h"
#include "tests/collectors/tap/loopback_pair.h"
#include "tests/collectors/tap/recording.h"
#include "tests/support/catch.h"

#include <chrono>
#include <thread>

namespace rooflined::tap {

namespace {

MonotonicTime monotonic_now() {
  return MonotonicTime(std::chrono::steady_clock::now().time_since_epoch());
}

// False where the kernel dropped packets: the machine is too busy to say anything.
bool check_capture(const std::string& interface, bool version6) {
  INFO(interface << (version6 ? ", IPv6" : ", IPv4"));
  test::LoopbackPair pair(version6);
  if (pair.port == 0) {
    WARN("no such address here");
    return true;
  }
  auto source = open_live({.interface = interface, .ports = {pair.port}});
  if (!source && source.error().code == ErrorCode::kDenied) {
    WARN(source.error().message());
    return true;
  }
  REQUIRE(source);
  const auto network = system_host_network();
  LocalHost local(*network, interface_index(interface.c_str()));
  test::RecordingFactory factory;
  Tap tap({{pair.port}, {}}, factory, &local);

  std::string large(500'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 7) large[i] = static_cast<char>('a' + i % 26);
  REQUIRE(pair.connect());
  const std::jthread talk([&] {
    pair.ask("ask");
    pair.answer(large);
    pair.close();
  });

  constexpr int kReadsMax = 200;
  for (int i = 0; i < kReadsMax && (factory.records.empty() || !factory.records[0]->closed); ++i) {
    tap.observe(monotonic_now());
    REQUIRE((*source)->read(tap, std::chrono::milliseconds(50)));
    tap.advance_live(monotonic_now());
  }
  if ((*source)->stats().dropped > 0) return false;
  REQUIRE(factory.records.size() == 1);
  CHECK(factory.records[0]->to_server == "ask");
  CHECK(factory.records[0]->to_client == large);
  CHECK(factory.records[0]->closed);
  CHECK(tap.counters().streams.gaps == 0);
  CHECK((*source)->stats().packets == tap.counters().packets);
  return true;
}

}  // namespace

TEST_CASE("a conversation on loopback, captured live", "[live_source]") {
  for (const char* interface : {"lo", "any"}) {
    for (const bool version6 : {false, true}) {
      constexpr int kAttemptsMax = 5;
      int attempts = 1;
      while (!check_capture(interface, version6) && attempts < kAttemptsMax) ++attempts;
      CHECK(attempts < kAttemptsMax);
    }
  }
}

TEST_CASE("nothing to capture is a timeout", "[live_source]") {
  auto source = open_live({.interface = "lo", .ports = {1}});
  if (!source) {
    WARN(source.error().message());
    return;
  }
  test::RecordingFactory factory;
  Tap tap({{1}, {}}, factory, nullptr);
  const auto outcome = (*source)->read(tap, std::chrono::milliseconds(1));
  REQUIRE(outcome);
  CHECK(*outcome == ReadOutcome::kTimeout);
}

TEST_CASE("an interface that does not exist is one clear line", "[live_source]") {
  const auto source = open_live({.interface = "rooflined-none", .ports = {8080}});
  REQUIRE_FALSE(source);
  // Without the capability the kernel says so first.
  if (source.error().code == ErrorCode::kDenied) {
    CHECK(source.error().message().find("CAP_NET_RAW") != std::string::npos);
  } else {
    CHECK(source.error().message() == "rooflined-none: no such network interface");
  }
}

}  // namespace rooflined::tap
