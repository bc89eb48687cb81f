// A TCP connection over loopback, for tests of live captures.

#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

namespace rooflined::test {

// A TCP connection of this process with itself, on a port that nobody else uses.
class LoopbackPair {
 public:
  explicit LoopbackPair(bool version6) {
    sockaddr_storage address{};
    socklen_t size = version6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (version6) {
      sockaddr_in6 any{};
      any.sin6_family = AF_INET6;
      any.sin6_addr = in6addr_loopback;
      std::memcpy(&address, &any, sizeof any);
    } else {
      sockaddr_in any{};
      any.sin_family = AF_INET;
      any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      std::memcpy(&address, &any, sizeof any);
    }
    const int family = version6 ? AF_INET6 : AF_INET;
    listener_ = ::socket(family, SOCK_STREAM, 0);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0) return;
    ::listen(listener_, 1);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    in_port_t raw = 0;  // at the same place in both kinds of address
    std::memcpy(&raw, reinterpret_cast<const char*>(&address) + offsetof(sockaddr_in, sin_port), sizeof raw);
    port = ntohs(raw);
    address_ = address;
    size_ = size;
    family_ = family;
  }
  ~LoopbackPair() {
    for (const int descriptor : {listener_, client_, server_}) {
      if (descriptor >= 0) ::close(descriptor);
    }
  }
  LoopbackPair(const LoopbackPair&) = delete;
  LoopbackPair& operator=(const LoopbackPair&) = delete;

  bool connect() {
    client_ = ::socket(family_, SOCK_STREAM, 0);
    if (::connect(client_, reinterpret_cast<sockaddr*>(&address_), size_) != 0) return false;
    server_ = ::accept(listener_, nullptr, nullptr);
    return server_ >= 0;
  }
  void ask(const std::string& text) { transfer(client_, server_, text); }
  void answer(const std::string& text) { transfer(server_, client_, text); }
  void close() {
    ::close(server_);
    ::close(client_);
    server_ = client_ = -1;
  }

  std::uint16_t port = 0;

 private:
  static void transfer(int from, int to, const std::string& text) {
    std::thread writer([&] {
      for (std::size_t sent = 0; sent < text.size();) {
        const ssize_t count = ::send(from, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) return;
        sent += static_cast<std::size_t>(count);
      }
    });
    std::string buffer(65536, '\0');
    for (std::size_t received = 0; received < text.size();) {
      const ssize_t count = ::recv(to, buffer.data(), buffer.size(), 0);
      if (count <= 0) break;
      received += static_cast<std::size_t>(count);
    }
    writer.join();
  }

  int listener_ = -1;
  int client_ = -1;
  int server_ = -1;
  int family_ = AF_INET;
  sockaddr_storage address_{};
  socklen_t size_ = 0;
};

}  // namespace rooflined::test
