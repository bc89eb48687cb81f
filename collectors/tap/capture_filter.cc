#include "collectors/tap/capture_filter.h"

#include "collectors/tap/link_layer.h"

#include <fmt/format.h>

#include <string_view>

namespace rooflined::tap {

namespace {

// The loopback interface is number 1 in every network namespace (LOOPBACK_IFINDEX in the kernel's net/flow.h), and 4 is
// PACKET_OUTGOING. The kernel has both beside the packet; libpcap translates these places of the cooked header.
constexpr std::string_view kNotSentOverLoopback = "not (link[4:4] = 1 and link[10] = 4)";

std::string any_of(std::span<const std::uint16_t> ports, std::string_view term) {
  std::string text;
  for (const std::uint16_t port : ports) {
    if (!text.empty()) text += " or ";
    text += fmt::format(fmt::runtime(term), port);
  }
  return "(" + text + ")";
}

}  // namespace

std::string capture_filter(std::span<const std::uint16_t> ports, int link_type) {
  // Hop-by-hop options (also in segments over 64 KB, RFC 2675), routing, authentication, destination options.
  const std::string untagged = fmt::format(
      "(tcp and {}) or (ip6 and (ip6[6] = 0 or ip6[6] = 43 or ip6[6] = 51 or ip6[6] = 60))", any_of(ports, "port {}"));
  switch (link_type) {
    case link_type::kEthernet:
      // `vlan` moves the place of everything after it by one tag.
      return fmt::format("({0}) or (vlan and (({0}) or vlan))", untagged);
    case link_type::kLinuxCooked2: {
      // The kernel takes the outer tag off before it hands a packet to a cooked socket, but for what a card sends that
      // leaves tagging to the kernel. libpcap has no `vlan` here, so the bytes are named: 20 of cooked header, 4 of
      // tag, then IP.
      const std::string ipv4 =
          fmt::format("link[22:2] = 0x0800 and link[33] = 6 and {}",
                      any_of(ports, "link[24+4*(link[24]&15):2] = {0} or link[26+4*(link[24]&15):2] = {0}"));
      const std::string ipv6 = fmt::format("link[22:2] = 0x86dd and (link[30] != 6 or {})",
                                           any_of(ports, "link[64:2] = {0} or link[66:2] = {0}"));
      const std::string tagged = fmt::format(
          "(link[0:2] = 0x8100 or link[0:2] = 0x88a8) and (({}) or ({}) or link[22:2] = 0x8100)", ipv4, ipv6);
      return fmt::format("{} and (({}) or ({}))", kNotSentOverLoopback, untagged, tagged);
    }
    default:
      return untagged;
  }
}

}  // namespace rooflined::tap
