#include "metrics/export/listen_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace rooflined::metrics_export {

namespace {

constexpr int kBacklog = 1024;  // a burst of connections beyond it waits a second for its SYN to be repeated

std::string errno_text(int number) {
  return std::generic_category().message(number);
}

// The bound address of a socket as "127.0.0.1:10074" or "[::]:10074", and its port.
void describe(ListenSocket& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(socket.fd.get(), address, &size) != 0 ||
      ::getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return;
  }
  std::from_chars(port.data(), port.data() + std::strlen(port.data()), socket.port);
  const bool brackets = storage.ss_family == AF_INET6;
  socket.address = fmt::format("{}{}{}:{}", brackets ? "[" : "", host.data(), brackets ? "]" : "", port.data());
}

struct Attempt {
  OwnedFd fd;
  int error = 0;
};

Attempt bind_and_listen(const addrinfo& address, const SocketMaker& make_socket) {
  Attempt attempt{OwnedFd(make_socket(address.ai_family)), 0};
  const int on = 1;
  const int off = 0;
  const int fd = attempt.fd.get();
  if (fd < 0 || ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      (address.ai_family == AF_INET6 && ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) ||
      ::bind(fd, address.ai_addr, address.ai_addrlen) != 0 || ::listen(fd, kBacklog) != 0) {
    attempt.error = errno;
    attempt.fd.reset();
  }
  return attempt;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    return Error{ErrorCode::kInvalid, host, error == EAI_SYSTEM ? errno_text(errno) : std::string(gai_strerror(error))};
  }
  return AddressList(list, &::freeaddrinfo);
}

}  // namespace

int make_tcp_socket(int family) {
  return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const Error wrong{ErrorCode::kInvalid, std::string(text),
                    "expected ADDRESS:PORT, [IPV6]:PORT or :PORT, as in 127.0.0.1:10074"};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  ListenAddress address;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) return wrong;
  if (host.starts_with('[')) {
    if (!host.ends_with(']') || host.size() < 3) return wrong;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong;
  }
  if (host.find_first_of("[]/ ") != std::string_view::npos) return wrong;
  address.host = host;
  return address;
}

Result<ListenSocket> open_listen_socket(std::string_view listen, const SocketMaker& make_socket) {
  const auto parsed = parse_listen_address(listen);
  if (!parsed) return parsed.error();
  const bool any = parsed->host.empty() || parsed->host == "::";
  const auto addresses = resolve(any ? "::" : parsed->host, parsed->port);
  if (!addresses) return Error{addresses.error().code, std::string(listen), addresses.error().detail};
  Attempt attempt;
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    attempt = bind_and_listen(*address, make_socket);
    if (attempt.fd.valid()) break;
  }
  // No IPv6 in the kernel, or switched off by sysctl.
  if (any && (attempt.error == EAFNOSUPPORT || attempt.error == EADDRNOTAVAIL)) {
    const auto fallback = resolve("0.0.0.0", parsed->port);
    if (fallback) attempt = bind_and_listen(**fallback, make_socket);
  }
  if (!attempt.fd.valid()) {
    const ErrorCode code = attempt.error == EADDRINUSE ? ErrorCode::kBusy
                           : attempt.error == EACCES   ? ErrorCode::kDenied
                                                       : ErrorCode::kIo;
    return Error{code, std::string(listen), errno_text(attempt.error)};
  }
  ListenSocket socket{std::move(attempt.fd), parsed->port, std::string(listen)};
  describe(socket);
  return socket;
}

}  // namespace rooflined::metrics_export
