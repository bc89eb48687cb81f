// The listening TCP sockets of this network namespace.
//
//   in:   the kernel's answer to sock_diag(7), or the text of /proc/net/tcp and tcp6
//   out:  which socket listens for an address, and where an engine's children listen
//
// Needs no privilege. Bounds: 65,536 sockets, 16 MiB of each table. Thread rule: none of its own.

#pragma once

#include "metrics/exchange.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rooflined::server {

struct ListeningSocket {
  Endpoint local;
  std::uint64_t user = 0;
  std::uint64_t inode = 0;
};

class ListeningSockets {
 public:
  explicit ListeningSockets(std::vector<ListeningSocket> sockets) : sockets_(std::move(sockets)) {}

  // As things are. Asks for listeners alone: for the tables below the kernel walks all connections, 6 ms a table on a
  // machine of 24 GiB that has none. Where it does not answer (no tcp_diag), the tables are read.
  static ListeningSockets now();
  // From PROC/net/tcp and PROC/net/tcp6.
  static ListeningSockets read(const std::string& proc);
  static ListeningSockets of_table(std::string_view table);

  // The inode of the socket that a connection to this address reaches: one on that very address goes before one on all
  // addresses. Absent: none, or it is in another namespace.
  std::optional<std::uint64_t> inode(const Endpoint& endpoint) const;
  // Ports above 1023 on which the user of `endpoint`'s listener listens for this host only: where Ollama starts its
  // child. As far as can be told newest first, at most `ports_max`.
  std::vector<std::uint16_t> child_ports(const Endpoint& endpoint, std::size_t ports_max) const;

  const std::vector<ListeningSocket>& all() const& { return sockets_; }
  const std::vector<ListeningSocket>& all() const&& = delete;

 private:
  const ListeningSocket* find(const Endpoint& endpoint) const;

  std::vector<ListeningSocket> sockets_;
};

// The far ends of open connections, from PROC/net/tcp and PROC/net/tcp6.
std::vector<Endpoint> remote_endpoints(const std::string& proc);

}  // namespace rooflined::server
