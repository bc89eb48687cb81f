// What the line says to its operator, and what it makes of connections that come to nothing.

#include "daemon/wiring.h"

#include "collectors/tap/link_layer.h"
#include "metrics/base/log.h"
#include "tests/support/catch.h"
#include "tests/support/hops.h"
#include "tests/support/packets.h"

#include <malloc.h>

#include <functional>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::test;

namespace {

std::vector<std::string>& logged() {
  static std::vector<std::string> lines;
  return lines;
}

const Endpoint kServer = ipv4(127, 0, 0, 1, 8080);
constexpr std::uint16_t kClientPort = 40000;

// Ten tokens, 20 ms apart, from `at_ms` on.
std::vector<TimedPacket> stream_of_ten(double at_ms) {
  return hop_packets({.server = kServer}, {.at_ms = at_ms, .texts = std::vector<std::string>(10, "word")}, kClientPort);
}

std::vector<TimedPacket> only(const std::vector<TimedPacket>& packets,
                              const std::function<bool(const tap::TcpSegment&)>& wanted) {
  std::vector<TimedPacket> kept;
  for (const TimedPacket& packet : packets) {
    tap::TcpSegment segment;
    if (tap::decode_tcp(packet.view(tap::link_type::kEthernet), segment) == tap::DecodeOutcome::kTcp &&
        wanted(segment)) {
      kept.push_back(packet);
    }
  }
  return kept;
}

// What the replay shows of the one server, at the end of the capture.
nlohmann::json target_of(std::vector<TimedPacket> packets) {
  Replay replay(8080);
  replay.feed(in_order(std::move(packets)));
  replay.finish();
  CHECK(replay.line().targets().exchanges_in_flight() == 0);
  const nlohmann::json report = replay.report();
  REQUIRE(report["targets"].size() == 1);
  return report["targets"][0];
}

}  // namespace

TEST_CASE("a port that speaks TLS or HTTP/2 is named once, however many connections there are") {
  logged().clear();
  log::set_sink([](log::Level, std::string_view line) { logged().emplace_back(line); });
  daemon::LineOptions options;
  options.ports = {8000, 8080};
  options.local_only = false;
  daemon::Line line(options);
  for (std::uint16_t i = 0; i < 3; ++i) {
    const auto at = [&](int ms) { return CaptureTime::from_ns((1000 + 10 * i + ms) * 1'000'000LL); };
    TcpConversation tls(ipv4(127, 0, 0, 1, static_cast<std::uint16_t>(40000 + i)), ipv4(127, 0, 0, 1, 8000));
    tls.open(at(0));
    tls.from_client(at(1), std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10));
    TcpConversation http2(ipv4(127, 0, 0, 1, static_cast<std::uint16_t>(50000 + i)), ipv4(127, 0, 0, 1, 8080));
    http2.open(at(2));
    http2.from_client(at(3), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    for (const auto& talk : {tls, http2})
      for (const TimedPacket& packet : talk.packets) line.on_packet(packet.view(tap::link_type::kEthernet));
  }
  const CaptureSnapshot snapshot = line.capture_snapshot("any", {});
  CHECK(snapshot.parse_errors.at("tls") == 3);
  CHECK(snapshot.parse_errors.at("http2") == 3);
  REQUIRE(logged().size() == 2);
  CHECK(logged()[0].find("port 8000 speaks TLS") == 0);
  CHECK(logged()[1].find("port 8080 speaks HTTP/2") == 0);
}

TEST_CASE("a hundred thousand connections without a request are bounded, and cost the one that has one nothing") {
  Replay replay(8080);
  const std::vector<StoredPacket> stream = in_order(stream_of_ten(0));
  const std::size_t before = mallinfo2().uordblks;
  std::size_t most = 0;
  constexpr unsigned kSilent = 100'000;
  for (unsigned i = 0; i < kSilent; ++i) {
    // Half of them say one byte and nothing more.
    const auto byte = [i](unsigned shift) { return static_cast<std::uint8_t>(i >> shift & 0xff); };
    TcpConversation talk(ipv4(10, byte(16), byte(8), byte(0), 50000), kServer);
    const CaptureTime at = capture_at(400.0 * i / kSilent);
    talk.open(at);
    if (i % 2 == 1) talk.from_client(at, "P");
    replay.feed(in_order(talk.packets));
    const std::size_t next = i * stream.size() / kSilent;
    if (next != (i + 1) * stream.size() / kSilent) replay.feed({stream[next]});
    if (i % 1000 == 0) most = std::max(most, mallinfo2().uordblks - before);
  }
  CHECK(most < 48'000'000);
  const CaptureSnapshot snapshot = replay.line().capture_snapshot("any", {});
  CHECK(snapshot.flows <= tap::TableLimits().connections_max);
  CHECK(snapshot.flows_ignored.at("evicted") >= kSilent - tap::TableLimits().connections_max);
  replay.finish();
  const nlohmann::json report = replay.report();
  REQUIRE(report["targets"].size() == 1);
  CHECK(report["targets"][0]["requests"] == 1);
  CHECK(report["targets"][0]["output_tokens"] == 10);
}

TEST_CASE("half-open flows: a side that vanished, a direction that is not seen, a port used again") {
  const std::vector<TimedPacket> whole = stream_of_ten(0);
  const auto from_server = [](const tap::TcpSegment& segment) { return segment.source.port == 8080; };

  // Its last six tokens, its end and its FIN never came; twenty minutes later somebody else asks.
  std::vector<TimedPacket> vanished(whole.begin(), whole.end() - 10);
  Replay replay(8080);
  replay.feed(in_order(vanished));
  CHECK(replay.line().targets().exchanges_in_flight() == 1);
  std::vector<TimedPacket> later =
      hop_packets({.server = kServer}, {.at_ms = 1.2e6, .texts = {"word"}}, kClientPort + 2);
  replay.feed(in_order(later));
  CHECK(replay.line().targets().exchanges_in_flight() == 0);
  replay.finish();
  const nlohmann::json target = replay.report()["targets"][0];
  CHECK(target["requests"] == 2);
  CHECK(target["requests_aborted"] == 1);
  // The silence is no decode time.
  CHECK(target["busy_seconds"].get<double>() < 0.2);

  // Only one direction comes along here: the answer can be read, the request was never seen.
  CHECK(target_of(only(whole, from_server))["output_tokens"] == 10);

  // The client crashed and comes back with the same port while the server still believes in the old connection.
  std::vector<TimedPacket> again(whole.begin(), whole.end() - 10);
  append(again, hop_packets({.server = kServer}, {.at_ms = 5000, .texts = {"a", "b", "c"}}, kClientPort, 70'000));
  const nlohmann::json reused = target_of(again);
  CHECK(reused["requests"] == 2);
  CHECK(reused["requests_aborted"] == 1);
}

TEST_CASE("a server on a port of the settings is nobody's child, whoever started it") {
  daemon::LineOptions options;
  options.ports = {8000, 8080};
  options.local_only = false;
  daemon::Line line(options);
  line.set_child_ports(kServer, {8000, 41234});
  CHECK(line.watch().ports == std::vector<std::uint16_t>{8000, 8080, 41234});
  for (const std::uint16_t port : std::vector<std::uint16_t>{8000, 41234}) {
    const Hop hop{.server = ipv4(127, 0, 0, 1, port), .style = Style::kNative};
    for (const TimedPacket& packet : hop_packets(hop, {.texts = {"a", "b", "c"}}, kClientPort))
      line.on_packet(packet.view(tap::link_type::kEthernet));
  }
  line.finish();
  const std::vector<TargetSnapshot> targets = line.targets().snapshots(std::nullopt);
  REQUIRE(targets.size() == 2);
  CHECK(targets[0].target == "llama.cpp-8000");
  CHECK(targets[1].target == "llama.cpp-8080");
  CHECK(targets[1].port == 41234);
}
