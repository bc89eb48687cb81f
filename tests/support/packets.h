// Builds TCP packets byte by byte, for tests, fuzz corpora and benchmarks: every link type, IPv4 and IPv6, VLAN tags,
// padding; a two-sided conversation with its sequence numbers; and capture files with nanosecond stamps.

#pragma once

#include "collectors/tap/link_layer.h"
#include "collectors/tap/packet.h"
#include "collectors/tap/tcp_segment.h"
#include "metrics/base/time.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rooflined::test {

using Wire = std::vector<std::byte>;

inline Endpoint ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, std::uint16_t port) {
  return Endpoint{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}, port};
}
inline Endpoint ipv6(std::uint16_t first, std::uint16_t last, std::uint16_t port) {
  Endpoint endpoint{{}, port};
  endpoint.address[0] = static_cast<std::uint8_t>(first >> 8);
  endpoint.address[1] = static_cast<std::uint8_t>(first & 0xff);
  endpoint.address[14] = static_cast<std::uint8_t>(last >> 8);
  endpoint.address[15] = static_cast<std::uint8_t>(last & 0xff);
  return endpoint;
}
inline bool is_ipv4(const Endpoint& endpoint) {
  return endpoint.address[10] == 0xff && endpoint.address[11] == 0xff;
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string as_text(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text.push_back(static_cast<char>(byte));
  return text;
}

struct TcpFields {
  Endpoint from;
  Endpoint to;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgment = 0;
  std::uint8_t flags = tap::tcp_flag::kAck;
  std::uint16_t window = 0xffff;
  std::string_view payload = {};
};

struct Wrapping {
  int link_type = tap::link_type::kEthernet;
  std::vector<std::uint16_t> vlan_types = {};  // 0x8100, 0x88a8: outermost first
  std::size_t padding = 0;                     // bytes behind the IP packet
  std::size_t ipv4_options = 0;                // bytes, a multiple of 4
  std::size_t tcp_options = 0;                 // bytes, a multiple of 4
  std::uint32_t interface_index = 1;           // cooked v2 only
  std::uint8_t packet_type = 0;                // cooked only: 0 to us, 4 sent by us
  bool length_zero = false;                    // the IP length field is 0, as offloading leaves it
};

inline void put16(Wire& out, std::size_t value) {
  out.push_back(static_cast<std::byte>(value >> 8 & 0xff));
  out.push_back(static_cast<std::byte>(value & 0xff));
}
inline void put32(Wire& out, std::size_t value) {
  put16(out, value >> 16 & 0xffff);
  put16(out, value & 0xffff);
}
inline void put(Wire& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void put_zeros(Wire& out, std::size_t count) {
  out.resize(out.size() + count);
}

// The TCP header (checksum left at 0) and its payload.
inline Wire tcp_part(const TcpFields& fields, std::size_t options = 0) {
  Wire out;
  put16(out, fields.from.port);
  put16(out, fields.to.port);
  put32(out, fields.sequence);
  put32(out, fields.acknowledgment);
  put16(out, (5 + options / 4) << 12 | fields.flags);
  put16(out, fields.window);
  put32(out, 0);
  for (std::size_t i = 0; i < options; ++i) out.push_back(std::byte{1});  // no-operation
  put(out, as_bytes(fields.payload));
  return out;
}

inline Wire ip_part(const TcpFields& fields, const Wrapping& wrapping) {
  const Wire tcp = tcp_part(fields, wrapping.tcp_options);
  const auto from = std::as_bytes(std::span(fields.from.address));
  const auto to = std::as_bytes(std::span(fields.to.address));
  Wire out;
  if (is_ipv4(fields.from)) {
    const std::size_t header = 20 + wrapping.ipv4_options;
    put16(out, (0x40 | header / 4) << 8);
    put16(out, wrapping.length_zero ? 0 : header + tcp.size());
    put32(out, 0x4000);  // identification 0, do not fragment
    put32(out, 64U << 24 | 6U << 16);
    put(out, from.subspan(12));
    put(out, to.subspan(12));
    for (std::size_t i = 0; i < wrapping.ipv4_options; ++i) out.push_back(std::byte{1});
  } else {
    put32(out, 6U << 28);
    put16(out, wrapping.length_zero ? 0 : tcp.size());
    put16(out, 6U << 8 | 64U);
    put(out, from);
    put(out, to);
  }
  put(out, tcp);
  return out;
}

// Puts `network` (an IP packet of that EtherType) into a frame.
inline Wire frame(std::span<const std::byte> network, std::size_t ether_type, const Wrapping& wrapping) {
  Wire out;
  const std::size_t first_type = wrapping.vlan_types.empty() ? ether_type : wrapping.vlan_types.front();
  switch (wrapping.link_type) {
    case tap::link_type::kEthernet:
      put_zeros(out, 12);
      put16(out, first_type);
      break;
    case tap::link_type::kLinuxCooked:
      put16(out, wrapping.packet_type);
      put16(out, 1);
      put16(out, 6);
      put_zeros(out, 8);
      put16(out, first_type);
      break;
    case tap::link_type::kLinuxCooked2:
      put16(out, first_type);
      put16(out, 0);
      put32(out, wrapping.interface_index);
      put16(out, 1);
      put16(out, std::size_t{wrapping.packet_type} << 8 | 6);
      put_zeros(out, 8);
      break;
    case tap::link_type::kNull:
      put32(out, 2U << 24);  // the family in the byte order of a little-endian host
      break;
    case tap::link_type::kLoop:
      put32(out, 2);
      break;
    default:
      break;  // raw IP
  }
  for (std::size_t i = 0; i < wrapping.vlan_types.size(); ++i) {
    put16(out, 7);  // the tag itself
    put16(out, i + 1 < wrapping.vlan_types.size() ? wrapping.vlan_types[i + 1] : ether_type);
  }
  put(out, network);
  put_zeros(out, wrapping.padding);
  return out;
}

inline Wire tcp_packet(const TcpFields& fields, const Wrapping& wrapping = {}) {
  return frame(ip_part(fields, wrapping), is_ipv4(fields.from) ? 0x0800 : 0x86dd, wrapping);
}

struct TimedPacket {
  CaptureTime at;
  Wire bytes;
  std::uint32_t wire_length = 0;  // 0: nothing was cut

  tap::Packet view(int link_type) const {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    return tap::Packet{at, bytes, wire_length == 0 ? size : wire_length, link_type};
  }
};

// A conversation of one client with one server: keeps the sequence numbers of both sides, and collects the packets.
//
//   TcpConversation talk(client, server);
//   talk.open(at);
//   talk.from_client(at, "GET / HTTP/1.1\r\n\r\n");
//   talk.from_server(at, "HTTP/1.1 200 OK\r\n");
//   talk.close(at);
class TcpConversation {
 public:
  TcpConversation(const Endpoint& client, const Endpoint& server, Wrapping wrapping = {},
                  std::uint32_t client_sequence = 1000, std::uint32_t server_sequence = 5000)
      : client_{client, client_sequence}, server_{server, server_sequence}, wrapping_(std::move(wrapping)) {}

  void open(CaptureTime at) {
    send(at, client_, server_, tap::tcp_flag::kSyn, {});
    send(at, server_, client_, tap::tcp_flag::kSyn | tap::tcp_flag::kAck, {});
    send(at, client_, server_, tap::tcp_flag::kAck, {});
  }
  void from_client(CaptureTime at, std::string_view payload, std::uint8_t flags = tap::tcp_flag::kAck) {
    send(at, client_, server_, flags, payload);
  }
  void from_server(CaptureTime at, std::string_view payload, std::uint8_t flags = tap::tcp_flag::kAck) {
    send(at, server_, client_, flags, payload);
  }
  // Both FINs, the server's first, and the last acknowledgment.
  void close(CaptureTime at) {
    from_server(at, {}, tap::tcp_flag::kFin | tap::tcp_flag::kAck);
    from_client(at, {}, tap::tcp_flag::kFin | tap::tcp_flag::kAck);
    from_server(at, {});
  }

  std::vector<TimedPacket> packets;

 private:
  struct Side {
    Endpoint endpoint;
    std::uint32_t sequence_next;
  };

  void send(CaptureTime at, Side& from, const Side& to, std::uint8_t flags, std::string_view payload) {
    const std::uint32_t acknowledgment = (flags & tap::tcp_flag::kAck) != 0 ? to.sequence_next : 0;
    packets.push_back(
        {at, tcp_packet({from.endpoint, to.endpoint, from.sequence_next, acknowledgment, flags, 0xffff, payload},
                        wrapping_)});
    const bool counts_one = (flags & (tap::tcp_flag::kSyn | tap::tcp_flag::kFin)) != 0;
    from.sequence_next += static_cast<std::uint32_t>(payload.size()) + (counts_one ? 1 : 0);
  }

  Side client_;
  Side server_;
  Wrapping wrapping_;
};

// The classic format, in this machine's byte order. Magic numbers as in pcap-savefile(5).
inline void write_pcap(const std::string& path, std::span<const TimedPacket> packets,
                       int link_type = tap::link_type::kEthernet, bool nanoseconds = true) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const auto write32 = [&file](std::uint32_t value) {
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  write32(nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4);
  write32(2U | 4U << 16);  // version 2.4, two 16-bit fields
  write32(0);
  write32(0);
  write32(262144);
  // Raw IP is 101 in files and 12 in the library.
  write32(link_type == tap::link_type::kRawIp ? 101 : static_cast<std::uint32_t>(link_type));
  for (const TimedPacket& packet : packets) {
    constexpr std::int64_t kNsPerSecond = 1'000'000'000;
    write32(static_cast<std::uint32_t>(packet.at.ns() / kNsPerSecond));
    write32(static_cast<std::uint32_t>(packet.at.ns() % kNsPerSecond / (nanoseconds ? 1 : 1000)));
    const auto size = static_cast<std::uint32_t>(packet.bytes.size());
    write32(size);
    write32(packet.wire_length == 0 ? size : packet.wire_length);
    file.write(reinterpret_cast<const char*>(packet.bytes.data()), static_cast<std::streamsize>(packet.bytes.size()));
  }
}

}  // namespace rooflined::test
