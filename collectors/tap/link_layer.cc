#include "collectors/tap/link_layer.h"

#include <algorithm>
#include <cstring>

namespace rooflined::tap {

namespace {

// IEEE 802 numbers.
constexpr std::uint16_t kEtherIpv4 = 0x0800;
constexpr std::uint16_t kEtherIpv6 = 0x86dd;
constexpr std::uint16_t kEtherVlan = 0x8100;
constexpr std::uint16_t kEtherQinQ = 0x88a8;
constexpr std::uint16_t kEtherQinQOld = 0x9100;

// Twice the largest segment that Linux builds for offloading (GSO_MAX_SIZE, 524,280 bytes).
constexpr std::size_t kSegmentMax = 1024 * 1024;

constexpr int kVlanTagsMax = 4;
constexpr int kExtensionHeadersMax = 8;

// IANA protocol numbers.
constexpr std::uint8_t kHopByHop = 0;
constexpr std::uint8_t kTcp = 6;
constexpr std::uint8_t kRouting = 43;
constexpr std::uint8_t kFragmentHeader = 44;
constexpr std::uint8_t kAuthentication = 51;
constexpr std::uint8_t kDestinationOptions = 60;

// The packet from some layer on: what was captured, and how long it was on the wire.
struct Rest {
  const std::byte* data;
  std::size_t captured;
  std::size_t wire;

  std::uint8_t u8(std::size_t at) const { return std::to_integer<std::uint8_t>(data[at]); }
  std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(u8(at) << 8 | u8(at + 1)); }
  std::uint32_t u32(std::size_t at) const { return std::uint32_t{u16(at)} << 16 | u16(at + 2); }

  // Requires: `count` <= captured.
  void skip(std::size_t count) {
    data += count;
    captured -= count;
    wire -= count;
  }
  // Forgets what is behind the first `length` bytes.
  void cut(std::size_t length) {
    captured = std::min(captured, length);
    wire = std::min(wire, length);
  }
};

Passage passage_of(std::uint16_t packet_type) {
  // linux/if_packet.h: PACKET_OUTGOING is 4; everything below came in.
  return packet_type == 4 ? Passage::kOutgoing : Passage::kIncoming;
}

// The exponent in the window scale option of a SYN: kind 3, length 3 (RFC 7323 §2.2).
std::optional<std::uint8_t> window_scale(const Rest& rest, std::size_t header) {
  for (std::size_t at = 20; at < header;) {
    const std::uint8_t kind = rest.u8(at);
    if (kind == 0) return std::nullopt;
    if (kind == 1) {
      ++at;
      continue;
    }
    if (at + 1 >= header) return std::nullopt;
    const std::size_t length = rest.u8(at + 1);
    if (length < 2 || at + length > header) return std::nullopt;
    if (kind == 3 && length == 3) return rest.u8(at + 2);
    at += length;
  }
  return std::nullopt;
}

// The TCP header and what follows; `rest` ends where the IP packet ends.
DecodeOutcome decode_tcp_header(Rest rest, TcpSegment& segment) {
  constexpr std::size_t kHeaderMin = 20;
  if (rest.wire < kHeaderMin) return DecodeOutcome::kMalformed;
  if (rest.captured < kHeaderMin) return DecodeOutcome::kTruncated;
  const std::size_t header = std::size_t{rest.u8(12)} >> 4 << 2;
  if (header < kHeaderMin || header > rest.wire) return DecodeOutcome::kMalformed;
  if (header > rest.captured) return DecodeOutcome::kTruncated;
  segment.source.port = rest.u16(0);
  segment.destination.port = rest.u16(2);
  segment.sequence = rest.u32(4);
  segment.acknowledgment = rest.u32(8);
  segment.flags = rest.u8(13);
  segment.window = rest.u16(14);
  segment.window_scale = segment.has(tcp_flag::kSyn) ? window_scale(rest, header) : std::nullopt;
  rest.skip(header);
  if (rest.wire > kSegmentMax) return DecodeOutcome::kMalformed;
  segment.payload = std::span(rest.data, rest.captured);
  segment.payload_length = static_cast<std::uint32_t>(rest.wire);
  return DecodeOutcome::kTcp;
}

void copy_ipv4_address(const std::byte* from, std::array<std::uint8_t, 16>& to) {
  to = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::memcpy(to.data() + 12, from, 4);
}

DecodeOutcome decode_ipv4(Rest rest, TcpSegment& segment) {
  constexpr std::size_t kHeaderMin = 20;
  if (rest.wire < kHeaderMin) return DecodeOutcome::kMalformed;
  if (rest.captured < kHeaderMin) return DecodeOutcome::kTruncated;
  if (rest.u8(0) >> 4 != 4) return DecodeOutcome::kMalformed;
  const std::size_t header = (std::size_t{rest.u8(0)} & 0xf) << 2;
  // 0 where the sender's card would have cut the packet up, and where it is longer than 65,535 bytes (BIG TCP).
  const std::size_t stated = rest.u16(2);
  const std::size_t total = stated == 0 ? rest.wire : stated;
  if (header < kHeaderMin || header > total || total > rest.wire) return DecodeOutcome::kMalformed;
  if ((rest.u16(6) & 0x3fff) != 0) return DecodeOutcome::kFragment;  // an offset, or more to come
  if (rest.u8(9) != kTcp) return DecodeOutcome::kNotTcp;
  if (header > rest.captured) return DecodeOutcome::kTruncated;
  copy_ipv4_address(rest.data + 12, segment.source.address);
  copy_ipv4_address(rest.data + 16, segment.destination.address);
  rest.cut(total);
  rest.skip(header);
  return decode_tcp_header(rest, segment);
}

DecodeOutcome decode_ipv6(Rest rest, TcpSegment& segment) {
  constexpr std::size_t kHeader = 40;
  if (rest.wire < kHeader) return DecodeOutcome::kMalformed;
  if (rest.captured < kHeader) return DecodeOutcome::kTruncated;
  if (rest.u8(0) >> 4 != 6) return DecodeOutcome::kMalformed;
  const std::size_t stated = rest.u16(4);
  std::uint8_t next = rest.u8(6);
  std::memcpy(segment.source.address.data(), rest.data + 8, 16);
  std::memcpy(segment.destination.address.data(), rest.data + 24, 16);
  rest.skip(kHeader);
  // 0 in a jumbogram (RFC 2675) and under offloading: then the packet ends where the frame ends.
  if (stated > rest.wire) return DecodeOutcome::kMalformed;
  if (stated != 0) rest.cut(stated);

  for (int headers = 0; next != kTcp; ++headers) {
    const bool known = next == kHopByHop || next == kRouting || next == kDestinationOptions ||
                       next == kFragmentHeader || next == kAuthentication;
    if (!known) return DecodeOutcome::kNotTcp;
    if (headers == kExtensionHeadersMax || rest.wire < 8) return DecodeOutcome::kMalformed;
    if (rest.captured < 8) return DecodeOutcome::kTruncated;
    std::size_t length = (std::size_t{rest.u8(1)} + 1) * 8;
    if (next == kAuthentication) length = (std::size_t{rest.u8(1)} + 2) * 4;
    if (next == kFragmentHeader) {
      length = 8;
      // A whole packet may carry this header too (RFC 6946): offset 0 and nothing to come.
      if ((rest.u16(2) & 0xfff9) != 0) return DecodeOutcome::kFragment;
    }
    if (length > rest.wire) return DecodeOutcome::kMalformed;
    if (length > rest.captured) return DecodeOutcome::kTruncated;
    next = rest.u8(0);
    rest.skip(length);
  }
  return decode_tcp_header(rest, segment);
}

// An IP packet whose version only its first byte tells.
DecodeOutcome decode_raw_ip(Rest rest, TcpSegment& segment) {
  if (rest.captured == 0) return DecodeOutcome::kTruncated;
  switch (rest.u8(0) >> 4) {
    case 4:
      return decode_ipv4(rest, segment);
    case 6:
      return decode_ipv6(rest, segment);
    default:
      return DecodeOutcome::kNotIp;
  }
}

DecodeOutcome decode_ether_type(std::uint16_t type, Rest rest, TcpSegment& segment) {
  for (int tags = 0; type == kEtherVlan || type == kEtherQinQ || type == kEtherQinQOld; ++tags) {
    if (tags == kVlanTagsMax) return DecodeOutcome::kMalformed;
    if (rest.captured < 4) return DecodeOutcome::kTruncated;
    type = rest.u16(2);
    rest.skip(4);
  }
  if (type == kEtherIpv4) return decode_ipv4(rest, segment);
  if (type == kEtherIpv6) return decode_ipv6(rest, segment);
  return DecodeOutcome::kNotIp;
}

}  // namespace

bool link_type_supported(int type) {
  switch (type) {
    case link_type::kNull:
    case link_type::kEthernet:
    case link_type::kRawIp:
    case link_type::kLoop:
    case link_type::kLinuxCooked:
    case link_type::kIpv4:
    case link_type::kIpv6:
    case link_type::kLinuxCooked2:
      return true;
    default:
      return false;
  }
}

std::string_view decode_outcome_name(DecodeOutcome outcome) {
  switch (outcome) {
    case DecodeOutcome::kTcp:
      return "tcp";
    case DecodeOutcome::kNotIp:
      return "not_ip";
    case DecodeOutcome::kNotTcp:
      return "not_tcp";
    case DecodeOutcome::kFragment:
      return "fragment";
    case DecodeOutcome::kTruncated:
      return "truncated";
    case DecodeOutcome::kMalformed:
      return "malformed";
    case DecodeOutcome::kUnsupportedLink:
      return "unsupported_link";
  }
  return "";
}

DecodeOutcome decode_tcp(const Packet& packet, TcpSegment& segment) {
  // A file may state a wire length below what it holds: the bytes are there, so they count.
  Rest rest{packet.bytes.data(), packet.bytes.size(), std::max<std::size_t>(packet.wire_length, packet.bytes.size())};
  segment.interface_index = 0;
  segment.passage = Passage::kUnknown;
  switch (packet.link_type) {
    case link_type::kEthernet: {
      constexpr std::size_t kHeader = 14;
      if (rest.captured < kHeader) return DecodeOutcome::kTruncated;
      const std::uint16_t type = rest.u16(12);
      rest.skip(kHeader);
      return decode_ether_type(type, rest, segment);
    }
    case link_type::kLinuxCooked: {
      constexpr std::size_t kHeader = 16;
      if (rest.captured < kHeader) return DecodeOutcome::kTruncated;
      segment.passage = passage_of(rest.u16(0));
      const std::uint16_t type = rest.u16(14);
      rest.skip(kHeader);
      return decode_ether_type(type, rest, segment);
    }
    case link_type::kLinuxCooked2: {
      constexpr std::size_t kHeader = 20;
      if (rest.captured < kHeader) return DecodeOutcome::kTruncated;
      segment.interface_index = rest.u32(4);
      segment.passage = passage_of(rest.u8(10));
      const std::uint16_t type = rest.u16(0);
      rest.skip(kHeader);
      return decode_ether_type(type, rest, segment);
    }
    case link_type::kNull:
    case link_type::kLoop: {
      // Four bytes of address family, whose values differ between systems; the IP version says the same.
      constexpr std::size_t kHeader = 4;
      if (rest.captured < kHeader) return DecodeOutcome::kTruncated;
      rest.skip(kHeader);
      return decode_raw_ip(rest, segment);
    }
    case link_type::kRawIp:
    case link_type::kIpv4:
    case link_type::kIpv6:
      return decode_raw_ip(rest, segment);
    default:
      return DecodeOutcome::kUnsupportedLink;
  }
}

}  // namespace rooflined::tap
