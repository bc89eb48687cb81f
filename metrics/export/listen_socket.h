// Opens the listening socket of the endpoint: "ADDR:PORT", "[::1]:PORT", "NAME:PORT" or ":PORT".
//
// ":PORT" and "[::]:PORT" take both families; where the kernel has no IPv6 they fall back to 0.0.0.0. Port 0 lets the
// kernel choose. SO_REUSEPORT is not set, so a second daemon on the port fails. Thread rule: any.

#pragma once

#include "metrics/base/result.h"
#include "metrics/export/owned_fd.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace rooflined::metrics_export {

struct ListenAddress {
  std::string host;  // without brackets; empty: every address
  std::uint16_t port = 0;
};

Result<ListenAddress> parse_listen_address(std::string_view text);

struct ListenSocket {
  OwnedFd fd;  // non-blocking, listening
  std::uint16_t port = 0;
  std::string address;  // what is bound, for a person: "127.0.0.1:10074"
};

// socket(2) for a family, so that a test can have a kernel without IPv6.
using SocketMaker = std::function<int(int family)>;
int make_tcp_socket(int family);

// On failure the error's `where` is the address and its `detail` the text of errno.
Result<ListenSocket> open_listen_socket(std::string_view listen, const SocketMaker& make_socket = make_tcp_socket);

}  // namespace rooflined::metrics_export
