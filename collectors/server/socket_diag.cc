#include "collectors/server/socket_diag.h"

#include "metrics/base/ip_address.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace rooflined::server {
namespace {

// The kernel fills at most so much at a time (net/netlink/af_netlink.c, netlink_dump()).
constexpr std::size_t kAnswerBytesMax = 32 * 1024;

class Netlink {
 public:
  Netlink() : descriptor_(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
    const timeval wait{1, 0};
    if (descriptor_ >= 0) ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  }
  ~Netlink() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Netlink(const Netlink&) = delete;
  Netlink& operator=(const Netlink&) = delete;

  bool ask_for_listeners(std::uint8_t family) const {
    struct {
      nlmsghdr header;
      inet_diag_req_v2 wanted;
    } request{};
    request.header.nlmsg_len = sizeof(request);
    request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    request.wanted.sdiag_family = family;
    request.wanted.sdiag_protocol = IPPROTO_TCP;
    request.wanted.idiag_states = 1U << TCP_LISTEN;
    return ::send(descriptor_, &request, sizeof(request), 0) == sizeof(request);
  }

  // The number of bytes; 0: none came, or more than fit.
  std::size_t receive(std::vector<char>& into) const {
    const ssize_t size = ::recv(descriptor_, into.data(), into.size(), MSG_TRUNC);
    return size <= 0 || static_cast<std::size_t>(size) > into.size() ? 0 : static_cast<std::size_t>(size);
  }

 private:
  int descriptor_;
};

ListeningSocket socket_of(const inet_diag_msg& told) {
  constexpr std::size_t kMappedPrefix = 12;
  constexpr std::size_t kV4Bytes = 4;
  ListeningSocket socket;
  socket.local.port = ntohs(told.id.idiag_sport);
  IpAddress& address = socket.local.address;
  if (told.idiag_family == AF_INET) {
    address[10] = address[11] = 0xFF;
    std::memcpy(address.data() + kMappedPrefix, &told.id.idiag_src, kV4Bytes);
  } else {
    std::memcpy(address.data(), &told.id.idiag_src, address.size());
  }
  socket.user = told.idiag_uid;
  socket.inode = told.idiag_inode;
  return socket;
}

enum class Answer { kMore, kDone, kFailed };

// One datagram of messages, each in its own length.
Answer take_messages(const char* bytes, std::size_t size, std::size_t sockets_max,
                     std::vector<ListeningSocket>& sockets) {
  for (std::size_t at = 0; at + sizeof(nlmsghdr) <= size;) {
    nlmsghdr header{};
    std::memcpy(&header, bytes + at, sizeof(header));
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > size - at) return Answer::kFailed;
    if (header.nlmsg_type == NLMSG_DONE) return Answer::kDone;
    if (header.nlmsg_type == NLMSG_ERROR) return Answer::kFailed;
    inet_diag_msg told{};
    if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY && header.nlmsg_len >= NLMSG_HDRLEN + sizeof(told)) {
      std::memcpy(&told, bytes + at + NLMSG_HDRLEN, sizeof(told));
      if (told.idiag_inode != 0 && sockets.size() < sockets_max) sockets.push_back(socket_of(told));
    }
    at += NLMSG_ALIGN(header.nlmsg_len);
  }
  return Answer::kMore;
}

}  // namespace

std::optional<std::vector<ListeningSocket>> diagnose_listening_sockets(std::size_t sockets_max) {
  std::vector<ListeningSocket> sockets;
  std::vector<char> bytes(kAnswerBytesMax);
  for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
    const Netlink netlink;  // of its own: what is left of a failed answer does not get into the next one
    if (!netlink.ask_for_listeners(family)) return std::nullopt;
    Answer answer = Answer::kMore;
    while (answer == Answer::kMore) {
      const std::size_t size = netlink.receive(bytes);
      answer = size == 0 ? Answer::kFailed : take_messages(bytes.data(), size, sockets_max, sockets);
    }
    if (answer == Answer::kFailed) return std::nullopt;
  }
  return sockets;
}

}  // namespace rooflined::server
