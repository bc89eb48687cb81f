// What the line says to its operator.

#include "daemon/wiring.h"

#include "metrics/base/log.h"
#include "tests/support/catch.h"
#include "tests/support/packets.h"

#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::test;

namespace {

std::vector<std::string>& logged() {
  static std::vector<std::string> lines;
  return lines;
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
