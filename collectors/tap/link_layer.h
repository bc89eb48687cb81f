// Takes a captured packet apart down to its TCP segment: link layer, VLAN tags, IPv4 or IPv6, TCP.
//
//   in:   the bytes of a packet, its length on the wire and its link type
//   out:  a TcpSegment, or the reason why there is none
//
// Never reads past the captured bytes, allocates nothing, follows at most a fixed number of tags and extension headers.
// Padding behind the IP packet is never payload. Checksums are not looked at: offloading leaves them blank on the
// sender's side. Threads: any, it has no state.

#pragma once

#include "collectors/tap/packet.h"
#include "collectors/tap/tcp_segment.h"

#include <cstdint>
#include <string_view>

namespace rooflined::tap {

// The DLT_* values of libpcap that are understood, so that this file needs no libpcap.
namespace link_type {
constexpr int kNull = 0;
constexpr int kEthernet = 1;
constexpr int kRawIp = 12;
constexpr int kLoop = 108;
constexpr int kLinuxCooked = 113;
constexpr int kIpv4 = 228;
constexpr int kIpv6 = 229;
constexpr int kLinuxCooked2 = 276;
}  // namespace link_type

bool link_type_supported(int type);

enum class DecodeOutcome : std::uint8_t {
  kTcp,
  kNotIp,
  kNotTcp,
  kFragment,         // an IP fragment: the sender's TCP avoids them, and they are not put together
  kTruncated,        // the capture ends before the TCP header does
  kMalformed,        // lengths that contradict each other
  kUnsupportedLink,  // a link type that is not in the list above
};
constexpr std::size_t kDecodeOutcomes = 7;

// "tcp", "not_ip", "not_tcp", "fragment", "truncated", "malformed", "unsupported_link".
std::string_view decode_outcome_name(DecodeOutcome outcome);

// `segment` is complete where kTcp is returned, and unspecified otherwise.
DecodeOutcome decode_tcp(const Packet& packet, TcpSegment& segment);

}  // namespace rooflined::tap
