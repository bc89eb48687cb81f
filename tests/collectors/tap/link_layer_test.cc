// Every way in which a TCP segment can be wrapped gives the same segment, and every way of cutting one gives a reason.

#include "collectors/tap/link_layer.h"

#include "tests/support/catch.h"
#include "tests/support/packets.h"

#include <algorithm>

namespace rooflined::tap {

namespace {

using test::as_text;
using test::Wire;
using test::Wrapping;

const Endpoint kClient4 = test::ipv4(10, 1, 2, 3, 40000);
const Endpoint kServer4 = test::ipv4(192, 168, 0, 9, 8080);
const Endpoint kClient6 = test::ipv6(0xfd00, 1, 40000);
const Endpoint kServer6 = test::ipv6(0xfd00, 2, 8080);

test::TcpFields fields(bool version6, std::string_view payload = "hello") {
  return {version6 ? kClient6 : kClient4,
          version6 ? kServer6 : kServer4,
          0xfffffff0,
          77,
          tcp_flag::kAck | tcp_flag::kPush,
          4321,
          payload};
}

Packet packet_of(const Wire& bytes, int type, std::uint32_t wire_length = 0) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  return {CaptureTime{}, bytes, wire_length == 0 ? size : wire_length, type};
}

struct Row {
  const char* name;
  Wrapping wrapping;
};

std::vector<Row> wrappings() {
  std::vector<Row> rows = {
      {"ethernet", {}},
      {"ethernet, VLAN", {.vlan_types = {0x8100}}},
      {"ethernet, QinQ", {.vlan_types = {0x88a8, 0x8100}}},
      {"ethernet, padding", {.padding = 20}},
      {"ethernet, IPv4 options", {.ipv4_options = 40}},
      {"ethernet, TCP options", {.tcp_options = 40}},
      {"ethernet, length 0", {.length_zero = true}},
      {"cooked", {.link_type = link_type::kLinuxCooked}},
      {"cooked, VLAN", {.link_type = link_type::kLinuxCooked, .vlan_types = {0x8100}}},
      {"cooked 2", {.link_type = link_type::kLinuxCooked2}},
      {"cooked 2, VLAN", {.link_type = link_type::kLinuxCooked2, .vlan_types = {0x8100}}},
      {"raw", {.link_type = link_type::kRawIp}},
      {"null", {.link_type = link_type::kNull}},
      {"loop", {.link_type = link_type::kLoop}},
  };
  return rows;
}

}  // namespace

TEST_CASE("a segment comes out of every wrapping, whole or with a reason when it is cut", "[link_layer]") {
  for (const bool version6 : {false, true}) {
    for (const Row& row : wrappings()) {
      INFO(row.name << (version6 ? ", IPv6" : ", IPv4"));
      const Wire bytes = test::tcp_packet(fields(version6), row.wrapping);
      TcpSegment segment;
      REQUIRE(decode_tcp(packet_of(bytes, row.wrapping.link_type), segment) == DecodeOutcome::kTcp);
      CHECK(segment.source == (version6 ? kClient6 : kClient4));
      CHECK(segment.destination == (version6 ? kServer6 : kServer4));
      CHECK(segment.sequence == 0xfffffff0);
      CHECK(segment.acknowledgment == 77);
      CHECK(segment.flags == (tcp_flag::kAck | tcp_flag::kPush));
      CHECK(segment.window == 4321);
      CHECK(as_text(segment.payload) == "hello");
      CHECK(segment.payload_length == 5);

      // Cut at each byte: a reason, or a segment that knows how much of it is missing.
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        const Wire cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        const auto outcome =
            decode_tcp(packet_of(cut, row.wrapping.link_type, static_cast<std::uint32_t>(bytes.size())), segment);
        if (outcome == DecodeOutcome::kTcp) {
          CHECK(segment.payload.size() == std::min<std::size_t>(5, 5 + row.wrapping.padding + size - bytes.size()));
          CHECK(segment.payload_length == 5);
        } else {
          CHECK(outcome == DecodeOutcome::kTruncated);
        }
        // The same bytes as a whole packet: contradicts itself somewhere, and is never read past its end.
        decode_tcp(packet_of(cut, row.wrapping.link_type), segment);
      }
    }
  }
}

TEST_CASE("cooked link types say which interface and which way", "[link_layer]") {
  TcpSegment segment;
  Wrapping wrapping{.link_type = link_type::kLinuxCooked2, .interface_index = 7, .packet_type = 4};
  REQUIRE(decode_tcp(packet_of(test::tcp_packet(fields(false), wrapping), wrapping.link_type), segment) ==
          DecodeOutcome::kTcp);
  CHECK(segment.interface_index == 7);
  CHECK(segment.passage == Passage::kOutgoing);

  wrapping = {.link_type = link_type::kLinuxCooked, .packet_type = 3};
  REQUIRE(decode_tcp(packet_of(test::tcp_packet(fields(false), wrapping), wrapping.link_type), segment) ==
          DecodeOutcome::kTcp);
  CHECK(segment.interface_index == 0);
  CHECK(segment.passage == Passage::kIncoming);

  REQUIRE(decode_tcp(packet_of(test::tcp_packet(fields(false)), link_type::kEthernet), segment) == DecodeOutcome::kTcp);
  CHECK(segment.passage == Passage::kUnknown);
}

TEST_CASE("segments over 64 KB have no length in their IP header", "[link_layer]") {
  const std::string large(100'000, 'x');
  for (const bool version6 : {false, true}) {
    TcpSegment segment;
    const Wire bytes = test::tcp_packet(fields(version6, large), {.length_zero = true});
    REQUIRE(decode_tcp(packet_of(bytes, link_type::kEthernet), segment) == DecodeOutcome::kTcp);
    CHECK(segment.payload.size() == large.size());
  }
}

TEST_CASE("IPv6 extension headers are walked", "[link_layer]") {
  const auto with_header = [](std::uint8_t type, const Wire& header) {
    Wire ip = test::ip_part(fields(true), {});
    ip[6] = static_cast<std::byte>(type);
    ip.insert(ip.begin() + 40, header.begin(), header.end());
    ip[5] = static_cast<std::byte>(ip.size() - 40);
    return test::frame(ip, 0x86dd, {});
  };
  const auto header = [](std::initializer_list<int> bytes) {
    Wire out;
    for (const int byte : bytes) out.push_back(static_cast<std::byte>(byte));
    return out;
  };
  struct Case {
    const char* name;
    std::uint8_t type;
    Wire header;
    DecodeOutcome expected;
  };
  const Case cases[] = {
      {"hop-by-hop", 0, header({6, 0, 0, 0, 0, 0, 0, 0}), DecodeOutcome::kTcp},
      {"routing, 16 bytes", 43, header({6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), DecodeOutcome::kTcp},
      {"authentication, 12 bytes", 51, header({6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), DecodeOutcome::kTcp},
      {"whole packet with a fragment header", 44, header({6, 0, 0, 0, 0, 0, 0, 1}), DecodeOutcome::kTcp},
      {"first fragment", 44, header({6, 0, 0, 1, 0, 0, 0, 1}), DecodeOutcome::kFragment},
      {"later fragment", 44, header({6, 0, 0, 8, 0, 0, 0, 1}), DecodeOutcome::kFragment},
      {"UDP behind hop-by-hop", 0, header({17, 0, 0, 0, 0, 0, 0, 0}), DecodeOutcome::kNotTcp},
      {"header longer than the packet", 0, header({6, 200, 0, 0, 0, 0, 0, 0}), DecodeOutcome::kMalformed},
      {"no next header", 59, {}, DecodeOutcome::kNotTcp},
  };
  for (const Case& row : cases) {
    INFO(row.name);
    TcpSegment segment;
    const Wire bytes = with_header(row.type, row.header);
    CHECK(decode_tcp(packet_of(bytes, link_type::kEthernet), segment) == row.expected);
    if (row.expected == DecodeOutcome::kTcp) CHECK(as_text(segment.payload) == "hello");
  }
  // An endless chain of headers.
  Wire chain;
  for (int i = 0; i < 20; ++i) test::put(chain, header({0, 0, 0, 0, 0, 0, 0, 0}));
  TcpSegment segment;
  CHECK(decode_tcp(packet_of(with_header(0, chain), link_type::kEthernet), segment) == DecodeOutcome::kMalformed);
}

TEST_CASE("what is no TCP segment has a reason", "[link_layer]") {
  struct Case {
    const char* name;
    std::size_t at;  // in an Ethernet frame with IPv4: 14 IP, 34 TCP
    int value;
    DecodeOutcome expected;
  };
  const Case cases[] = {
      {"ARP", 13, 0x06, DecodeOutcome::kNotIp},
      {"version 5", 14, 0x55, DecodeOutcome::kMalformed},
      {"header of 16 bytes", 14, 0x44, DecodeOutcome::kMalformed},
      {"header longer than the packet", 14, 0x4f, DecodeOutcome::kMalformed},
      {"longer than the frame", 16, 0xff, DecodeOutcome::kMalformed},
      {"shorter than its header", 17, 19, DecodeOutcome::kMalformed},
      {"more fragments", 20, 0x20, DecodeOutcome::kFragment},
      {"fragment offset", 21, 0x01, DecodeOutcome::kFragment},
      {"do not fragment", 20, 0x40, DecodeOutcome::kTcp},
      {"UDP", 23, 17, DecodeOutcome::kNotTcp},
      {"TCP header of 16 bytes", 46, 0x40, DecodeOutcome::kMalformed},
      {"TCP header longer than the packet", 46, 0xf0, DecodeOutcome::kMalformed},
  };
  for (const Case& row : cases) {
    INFO(row.name);
    Wire bytes = test::tcp_packet(fields(false));
    bytes[row.at] = static_cast<std::byte>(row.value);
    TcpSegment segment;
    CHECK(decode_tcp(packet_of(bytes, link_type::kEthernet), segment) == row.expected);
  }
  TcpSegment segment;
  const Wire bytes = test::tcp_packet(fields(false));
  CHECK(decode_tcp(packet_of(bytes, 105), segment) == DecodeOutcome::kUnsupportedLink);
  CHECK_FALSE(link_type_supported(105));
  Wire tags =
      test::frame(test::ip_part(fields(false), {}), 0x0800, {.vlan_types = std::vector<std::uint16_t>(6, 0x8100)});
  CHECK(decode_tcp(packet_of(tags, link_type::kEthernet), segment) == DecodeOutcome::kMalformed);
}

TEST_CASE("padding is no payload", "[link_layer]") {
  for (const bool version6 : {false, true}) {
    TcpSegment segment;
    const Wire bytes = test::tcp_packet(fields(version6, ""), {.padding = 6});
    REQUIRE(decode_tcp(packet_of(bytes, link_type::kEthernet), segment) == DecodeOutcome::kTcp);
    CHECK(segment.payload.empty());
    CHECK(segment.payload_length == 0);
  }
}

}  // namespace rooflined::tap
