// The listening sockets of this network namespace, from /proc/net/tcp and tcp6.

#pragma once

#include "metrics/exchange.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rooflined::daemon {

class Listeners {
 public:
  // Reads the tables now; at most 16 MiB of each.
  static Listeners read(const std::string& proc_root = "/proc");

  // The inode of the socket that listens for this address; 0 where none does (or it is in another namespace).
  std::uint64_t inode(const Endpoint& endpoint) const;
  // As server::child_ports(), from both tables.
  std::vector<std::uint16_t> child_ports(const Endpoint& endpoint, std::size_t ports_max) const;
  // What something listens on, and what is at the far end of open connections, from both tables.
  std::vector<Endpoint> listening() const;
  std::vector<Endpoint> remotes() const;

 private:
  std::string tcp_;
  std::string tcp6_;
};

}  // namespace rooflined::daemon
