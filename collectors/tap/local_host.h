// Says whether the server of a connection runs on this host. Only such servers are targets.
//
// Local is a server whose address is this host's, or that is reached over lo, a veth pair, a bridge, a tun device or
// the like, and not over a network card. A container that asks a remote server is seen on its veth pair first: the
// routing table says where the server really is.
//
// The host is asked through HostNetwork: addresses once a minute and, at most once a second, when an address is
// unknown. Threads: one.

#pragma once

#include "collectors/tap/tcp_segment.h"
#include "metrics/base/ip_address.h"
#include "metrics/base/time.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

namespace rooflined::tap {

// As in Endpoint.
using Address = IpAddress;

// What the operating system knows of its network. A failure is an empty answer.
class HostNetwork {
 public:
  virtual ~HostNetwork() = default;
  virtual std::vector<Address> addresses() = 0;
  // Whether packets on this interface leave the machine: a network card, or a VLAN or bond on top of one. Nullopt: no
  // such interface.
  virtual std::optional<bool> is_card(std::uint32_t interface_index) = 0;
  // The interface over which packets to this address leave.
  virtual std::optional<std::uint32_t> route(const Address& address) = 0;
};

// getifaddrs(3), `sys_root`/class/net and rtnetlink(7).
std::unique_ptr<HostNetwork> system_host_network(const std::filesystem::path& sys_root = "/sys");

// The index of an interface by its name; 0 where there is none, and for "any".
std::uint32_t interface_index(const char* name);

enum class Locality : std::uint8_t {
  kOwnAddress,  // the server's address is this host's
  kReached,     // it is reached without a network card
  kRemote,
  kUnclear,  // this copy of the packet says nothing: forwarded from the card to a container, perhaps
};

class LocalHost {
 public:
  // `capture_interface`: the index where the capture is of one interface, else 0. Requires: `network` outlives this.
  LocalHost(HostNetwork& network, std::uint32_t capture_interface)
      : network_(network), capture_interface_(capture_interface) {}

  // `to_server`: the segment goes from the client to the server.
  Locality judge(const Address& server, const TcpSegment& segment, bool to_server, LineTime now);

  // What this copy of a segment says against a server that was judged kReached: true where it went over a card.
  bool denies(const TcpSegment& segment, bool to_server);

 private:
  static constexpr Duration kRefreshEvery = std::chrono::seconds(60);
  static constexpr Duration kRefreshMin = std::chrono::seconds(1);
  static constexpr std::size_t kCacheMax = 1024;

  bool is_own(const Address& address, LineTime now);
  void refresh(LineTime now);
  std::optional<bool> is_card(std::uint32_t interface_index);
  std::optional<bool> routes_over_card(const Address& address);
  std::uint32_t interface_of(const TcpSegment& segment) const;

  HostNetwork& network_;
  std::uint32_t capture_interface_;
  std::optional<LineTime> refreshed_at_;
  std::set<Address> own_;
  std::unordered_map<std::uint32_t, std::optional<bool>> cards_;
  std::map<Address, std::optional<bool>> routes_;
};

}  // namespace rooflined::tap
