#include "collectors/tap/local_host.h"

namespace rooflined::tap {

Locality LocalHost::judge(const Address& server, const TcpSegment& segment, bool to_server, LineTime now) {
  if (is_own(server, now)) return Locality::kOwnAddress;
  if (denies(segment, to_server)) return Locality::kRemote;
  const auto card = is_card(interface_of(segment));
  if (card == true) return Locality::kUnclear;
  const auto over_card = routes_over_card(server);
  if (over_card == true) return Locality::kRemote;
  // Neither the capture nor the routing table says anything: better nothing than somebody else's server.
  if (!card && !over_card) return Locality::kRemote;
  return Locality::kReached;
}

bool LocalHost::denies(const TcpSegment& segment, bool to_server) {
  if (is_card(interface_of(segment)) != true) return false;
  // On its way out to the server, or on its way in from it. The other two are a client elsewhere.
  const Passage to_remote = to_server ? Passage::kOutgoing : Passage::kIncoming;
  return segment.passage == to_remote || segment.passage == Passage::kUnknown;
}

bool LocalHost::is_own(const Address& address, LineTime now) {
  // Whatever the interfaces list.
  if (is_loopback(address)) return true;
  if (!refreshed_at_ || now - *refreshed_at_ >= kRefreshEvery) refresh(now);
  if (own_.contains(address)) return true;
  if (now - *refreshed_at_ < kRefreshMin) return false;
  refresh(now);
  return own_.contains(address);
}

void LocalHost::refresh(LineTime now) {
  refreshed_at_ = now;
  const auto addresses = network_.addresses();
  own_ = std::set<Address>(addresses.begin(), addresses.end());
  cards_.clear();
  routes_.clear();
}

std::uint32_t LocalHost::interface_of(const TcpSegment& segment) const {
  return segment.interface_index != 0 ? segment.interface_index : capture_interface_;
}

std::optional<bool> LocalHost::is_card(std::uint32_t interface_index) {
  if (interface_index == 0) return std::nullopt;
  const auto known = cards_.find(interface_index);
  if (known != cards_.end()) return known->second;
  if (cards_.size() >= kCacheMax) cards_.clear();
  return cards_.emplace(interface_index, network_.is_card(interface_index)).first->second;
}

std::optional<bool> LocalHost::routes_over_card(const Address& address) {
  const auto known = routes_.find(address);
  if (known != routes_.end()) return known->second;
  if (routes_.size() >= kCacheMax) routes_.clear();
  const auto over = network_.route(address);
  return routes_.emplace(address, over ? is_card(*over) : std::nullopt).first->second;
}

}  // namespace rooflined::tap
