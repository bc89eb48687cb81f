#include "daemon/listeners.h"

#include "collectors/server/process.h"
#include "metrics/base/file_start.h"

#include <algorithm>

namespace rooflined::daemon {
namespace {

constexpr std::size_t kTableBytesMax = 16 * 1024 * 1024;

}  // namespace

Listeners Listeners::read(const std::string& proc_root) {
  Listeners listeners;
  listeners.tcp_ = read_file_start(proc_root + "/net/tcp", kTableBytesMax);
  listeners.tcp6_ = read_file_start(proc_root + "/net/tcp6", kTableBytesMax);
  return listeners;
}

std::uint64_t Listeners::inode(const Endpoint& endpoint) const {
  const auto in_tcp = server::listening_inode(tcp_, endpoint);
  return in_tcp ? *in_tcp : server::listening_inode(tcp6_, endpoint).value_or(0);
}

std::vector<std::uint16_t> Listeners::child_ports(const Endpoint& endpoint, std::size_t ports_max) const {
  const bool in_tcp = server::listening_inode(tcp_, endpoint).has_value();
  const std::string& parent_table = in_tcp ? tcp_ : tcp6_;
  std::vector<std::uint16_t> ports = server::child_ports(parent_table, tcp_, endpoint, ports_max);
  for (const std::uint16_t port : server::child_ports(parent_table, tcp6_, endpoint, ports_max - ports.size())) {
    if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
  }
  return ports;
}

namespace {

constexpr std::size_t kEndpointsMax = 65'536;

template <typename Read>
std::vector<Endpoint> from_both(const std::string& tcp, const std::string& tcp6, Read read) {
  std::vector<Endpoint> endpoints = read(tcp, kEndpointsMax);
  const std::vector<Endpoint> more = read(tcp6, kEndpointsMax);
  endpoints.insert(endpoints.end(), more.begin(), more.end());
  return endpoints;
}

}  // namespace

std::vector<Endpoint> Listeners::listening() const {
  return from_both(tcp_, tcp6_, server::listening_endpoints);
}

std::vector<Endpoint> Listeners::remotes() const {
  return from_both(tcp_, tcp6_, server::remote_endpoints);
}

}  // namespace rooflined::daemon
