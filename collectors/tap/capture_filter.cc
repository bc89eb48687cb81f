#include "collectors/tap/capture_filter.h"

#include "collectors/tap/link_layer.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

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

std::string not_server(const Endpoint& server) {
  constexpr std::array<std::uint8_t, 12> kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool ipv4 = std::equal(kIpv4Prefix.begin(), kIpv4Prefix.end(), server.address.begin());
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(ipv4 ? AF_INET : AF_INET6, server.address.data() + (ipv4 ? 12 : 0), text.data(), text.size());
  return fmt::format("not (src host {0} and src port {1}) and not (dst host {0} and dst port {1})", text.data(),
                     server.port);
}

// in_share(), and SYNs. `tcp[…]` sees IPv4 only (pcap-filter(7)).
std::string share(unsigned one_in) {
  return fmt::format(
      "((ip and (tcp[13] & 2 != 0 or ((tcp[0:2] + tcp[2:2]) >> 1) & {0} = 0)) or "
      "(ip6 and (ip6[53] & 2 != 0 or ((ip6[40:2] + ip6[42:2]) >> 1) & {0} = 0)))",
      one_in - 1);
}

// Hop-by-hop options (also in segments over 64 KB, RFC 2675), routing, authentication, destination options.
constexpr std::string_view kExtensionHeaders = "(ip6 and (ip6[6] = 0 or ip6[6] = 43 or ip6[6] = 51 or ip6[6] = 60))";

// The tests for the ports, where packets come without a VLAN tag and, behind one, as bytes of a cooked packet.
struct PortTests {
  std::string untagged;
  std::string cooked_ipv4;
  std::string cooked_ipv6;
};

std::string filter_of(const PortTests& tests, int link_type) {
  const std::string untagged = fmt::format("{} or {}", tests.untagged, kExtensionHeaders);
  switch (link_type) {
    case link_type::kEthernet:
      // `vlan` moves the place of everything after it by one tag.
      return fmt::format("({0}) or (vlan and (({0}) or vlan))", untagged);
    case link_type::kLinuxCooked2: {
      // The kernel takes the outer tag off before it hands a packet to a cooked socket, but for what a card sends that
      // leaves tagging to the kernel. libpcap has no `vlan` here, so the bytes are named: 20 of cooked header, 4 of
      // tag, then IP.
      const std::string ipv4 = fmt::format("link[22:2] = 0x0800 and link[33] = 6 and {}", tests.cooked_ipv4);
      const std::string ipv6 = fmt::format("link[22:2] = 0x86dd and (link[30] != 6 or {})", tests.cooked_ipv6);
      const std::string tagged = fmt::format(
          "(link[0:2] = 0x8100 or link[0:2] = 0x88a8) and (({}) or ({}) or link[22:2] = 0x8100)", ipv4, ipv6);
      return fmt::format("{} and (({}) or ({}))", kNotSentOverLoopback, untagged, tagged);
    }
    default:
      return untagged;
  }
}

}  // namespace

std::string capture_filter(const Watch& watch, int link_type) {
  const std::span<const std::uint16_t> ports = watch.ports;
  std::string untagged = fmt::format("tcp and {}", any_of(ports, "port {}"));
  for (const Endpoint& server : watch.left_out) untagged += " and " + not_server(server);
  if (watch.one_in > 1) untagged += " and " + share(watch.one_in);
  return filter_of(
      {.untagged = fmt::format("({})", untagged),
       .cooked_ipv4 = any_of(ports, "link[24+4*(link[24]&15):2] = {0} or link[26+4*(link[24]&15):2] = {0}"),
       .cooked_ipv6 = any_of(ports, "link[64:2] = {0} or link[66:2] = {0}")},
      link_type);
}

std::string doorbell_filter(std::span<const std::uint16_t> ports, int link_type) {
  // `tcp[…]` sees IPv4 only (pcap-filter(7)): the header's length is read at its place in either. The IP length is 0
  // where offloading left it so (segments over 64 KB), and then differs from the headers', too.
  const std::string ipv4 = "(ip and ip[2:2] - ((ip[0]&15)<<2) != (tcp[12]&0xf0)>>2)";
  const std::string ipv6 = "(ip6 and ip6[4:2] != (ip6[52]&0xf0)>>2)";
  return filter_of({.untagged = fmt::format("(tcp and {} and ({} or {}))", any_of(ports, "dst port {}"), ipv4, ipv6),
                    .cooked_ipv4 = any_of(ports, "link[26+4*(link[24]&15):2] = {}"),
                    .cooked_ipv6 = any_of(ports, "link[66:2] = {}")},
                   link_type);
}

}  // namespace rooflined::tap
