#include "daemon/local_socket.h"

#include "daemon/clock.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

namespace rooflined::daemon {
namespace {

constexpr int kBacklog = 8;

Error io_error(const std::string& where) {
  return Error{ErrorCode::kIo, where, std::strerror(errno)};
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Error{ErrorCode::kLimit, path,
                 fmt::format("a socket's path has at most {} characters", sizeof(address.sun_path) - 1)};
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

template <typename Call>
int with_address(Call call, int fd, const sockaddr_un& address) {
  return call(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

// Its supplementary groups, too: getsockopt(SO_PEERGROUPS), Linux 4.13.
bool peer_is_in_group(int fd, gid_t group) {
  constexpr std::size_t kGroupsMax = 65'536;  // NGROUPS_MAX
  std::vector<gid_t> groups(kGroupsMax);
  socklen_t size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) return false;
  groups.resize(size / sizeof(gid_t));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

Result<int> connect_locally(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return address.error();
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return io_error(path);
  if (with_address(::connect, fd, *address) == 0) return fd;
  const Error error = errno == ENOENT ? Error{ErrorCode::kNotFound, path, "no such socket"} : io_error(path);
  ::close(fd);
  return error;
}

Result<int> listen_locally(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return address.error();
  if (const auto other = connect_locally(path); other) {
    ::close(*other);
    return Error{ErrorCode::kBusy, path, "another daemon listens there"};
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) ::unlink(path.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return io_error(path);
  // Until chmod() nobody else may connect: that takes the right to write, which no usual umask leaves to others.
  if (with_address(::bind, fd, *address) != 0 || ::chmod(path.c_str(), 0660) != 0 || ::listen(fd, kBacklog) != 0) {
    const Error error = io_error(path);
    ::close(fd);
    return error;
  }
  return fd;
}

int accept_locally(int listener) {
  return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
}

LocalConnection::LocalConnection(int fd, std::chrono::milliseconds line_within) : fd_(fd), line_within_(line_within) {}

LocalConnection::~LocalConnection() {
  ::close(fd_);
}

Result<std::string> LocalConnection::read_line(std::size_t bytes_max) const {
  const MonotonicTime until = monotonic_now() + line_within_;
  std::string line;
  while (line.size() <= bytes_max) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - monotonic_now());
    pollfd wait{fd_, POLLIN, 0};
    const bool ready = left.count() > 0 && ::poll(&wait, 1, static_cast<int>(left.count())) > 0;
    std::array<char, 512> piece{};
    const ssize_t got = ready ? ::recv(fd_, piece.data(), piece.size(), MSG_DONTWAIT) : 0;
    if (got <= 0) return Error{ErrorCode::kTruncated, "control socket", "no line came"};
    const char* const end = std::find(piece.data(), piece.data() + got, '\n');
    line.append(piece.data(), static_cast<std::size_t>(end - piece.data()));
    if (end != piece.data() + got) return line;
  }
  return Error{ErrorCode::kLimit, "control socket", "a line too long"};
}

Status LocalConnection::write_line(std::string_view line) const {
  const std::string text = std::string(line) + "\n";
  // A line fits into any socket's buffer; a peer that is gone must not end this program.
  const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(text.size())) return io_error("control socket");
  return ok_status();
}

Result<std::string> LocalConnection::permitted_peer() const {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return io_error("control socket");
  const std::string who = fmt::format("user {}, process {}", peer.uid, peer.pid);
  const bool permitted =
      peer.uid == 0 || peer.uid == ::geteuid() || peer.gid == ::getegid() || peer_is_in_group(fd_, ::getegid());
  if (permitted) return who;
  return Error{ErrorCode::kDenied, "", who + " may not mark deploys: root, or a member of the daemon's group may"};
}

}  // namespace rooflined::daemon
