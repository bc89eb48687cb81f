// Which packet rings: a request to a server of this host, in either version of IP, and nothing that merely looks
// around.

#include "collectors/tap/doorbell.h"

#include "tests/support/catch.h"
#include "tests/support/packets.h"

#include <string>
#include <string_view>

namespace rooflined::tap {

namespace {

using test::Wire;

constexpr std::uint32_t kCard = 2;
constexpr std::uint32_t kVeth = 4;

// 192.168.0.9 is this host; 172.17.0.2 a container on it, 10.9.8.7 a server behind the card.
class FakeNetwork final : public HostNetwork {
 public:
  std::vector<Address> addresses() override { return {test::ipv4(192, 168, 0, 9, 0).address}; }
  std::optional<bool> is_card(std::uint32_t index) override { return index == kCard; }
  std::optional<std::uint32_t> route(const Address& address) override {
    return address == test::ipv4(172, 17, 0, 2, 0).address ? kVeth : kCard;
  }
};

constexpr std::uint16_t kPorts[] = {8080};
constexpr std::string_view kPost = "POST /v1/chat/completions HTTP/1.1\r\n";

bool rings_at(const Endpoint& from, const Endpoint& to, std::string_view payload, std::uint32_t interface = 1,
              std::uint8_t packet_type = 0, std::size_t tcp_options = 12) {
  FakeNetwork network;
  LocalHost local(network, 0);
  const test::Wrapping wrapping{.link_type = link_type::kLinuxCooked2,
                                .tcp_options = tcp_options,
                                .interface_index = interface,
                                .packet_type = packet_type};
  Wire bytes = test::tcp_packet({from, to, 1, 1, tcp_flag::kAck, 1, payload}, wrapping);
  const auto length = static_cast<std::uint32_t>(bytes.size());
  bytes.resize(std::min<std::size_t>(bytes.size(), 128));
  return rings(Packet{CaptureTime::from_ns(1), bytes, length, link_type::kLinuxCooked2}, kPorts, local);
}

}  // namespace

TEST_CASE("what rings the doorbell", "[doorbell]") {
  const Endpoint client = test::ipv4(127, 0, 0, 1, 40000);
  const Endpoint server = test::ipv4(127, 0, 0, 1, 8080);
  CHECK(rings_at(client, server, kPost));
  CHECK(rings_at(test::ipv6(0, 1, 40000), test::ipv6(0, 1, 8080), kPost));
  CHECK(rings_at(test::ipv6(0, 1, 40000), test::ipv6(0, 1, 8080), kPost, 1, 0, 40));
  CHECK(rings_at(client, server, "P"));                     // cut anywhere
  CHECK(rings_at(client, server, "\x16\x03\x01"));          // TLS
  CHECK(rings_at(client, server, std::string(5000, 'x')));  // cut by the socket
  CHECK_FALSE(rings_at(client, server, ""));                // an acknowledgement, SYN or FIN
  CHECK_FALSE(rings_at(client, server, "GET /health HTTP/1.1\r\n"));
  CHECK_FALSE(rings_at(client, server, "HEAD / HTTP/1.1\r\n"));
  CHECK_FALSE(rings_at(test::ipv6(0, 1, 40000), test::ipv6(0, 1, 8080), "GET /metrics HTTP/1.1\r\n", 1, 0, 40));
  CHECK_FALSE(rings_at(server, client, "HTTP/1.1 200 OK\r\n"));
  CHECK_FALSE(rings_at(client, test::ipv4(127, 0, 0, 1, 10074), kPost));
}

TEST_CASE("only servers of this host ring the doorbell", "[doorbell]") {
  const Endpoint client = test::ipv4(192, 168, 0, 50, 40000);
  const Endpoint own = test::ipv4(192, 168, 0, 9, 8080);
  const Endpoint container = test::ipv4(172, 17, 0, 2, 8080);
  const Endpoint elsewhere = test::ipv4(10, 9, 8, 7, 8080);
  constexpr std::uint8_t kOutgoing = 4;
  CHECK(rings_at(client, own, kPost, kCard));
  CHECK(rings_at(client, container, kPost, kVeth, kOutgoing));
  CHECK_FALSE(rings_at(client, container, kPost, kCard));  // and rings a moment later, on the way to the container
  CHECK_FALSE(rings_at(own, elsewhere, kPost, kCard, kOutgoing));
  CHECK_FALSE(rings_at(container, elsewhere, kPost, kVeth));
}

TEST_CASE("a packet whose headers do not fit into what is captured rings, no matter whose it is", "[doorbell]") {
  FakeNetwork network;
  LocalHost local(network, 0);
  Wire bytes = test::tcp_packet({test::ipv6(0, 1, 40000), test::ipv6(0, 1, 8080), 1, 1, tcp_flag::kAck, 1, kPost},
                                {.link_type = link_type::kLinuxCooked2, .tcp_options = 40});
  const auto length = static_cast<std::uint32_t>(bytes.size());
  bytes.resize(70);
  CHECK(rings(Packet{CaptureTime(), bytes, length, link_type::kLinuxCooked2}, kPorts, local));
}

}  // namespace rooflined::tap
