// Who listens: from the kernel's tables as they are printed, and as the kernel answers.

#include "collectors/server/listening_sockets.h"
#include "collectors/server/socket_diag.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::server;

namespace {

constexpr const char* kTableHead =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

Endpoint loopback(std::uint16_t port) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1}, port};
}

Endpoint v6_loopback(std::uint16_t port) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, port};
}

// Listens on a port of the kernel's choice.
class Listener {
 public:
  explicit Listener(int family) : descriptor_(::socket(family, SOCK_STREAM, 0)) {
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET) {
      reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
    }
    socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    listens_ = ::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(descriptor_, 1) == 0 &&
               ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    // The port is at the same place in both.
    port_ = ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
  }
  ~Listener() { ::close(descriptor_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  bool listens() const { return listens_; }
  std::uint16_t port() const { return port_; }
  std::uint64_t inode() const {
    struct stat status {};
    return ::fstat(descriptor_, &status) == 0 ? status.st_ino : 0;
  }

 private:
  int descriptor_;
  bool listens_ = false;
  std::uint16_t port_ = 0;
};

}  // namespace

TEST_CASE("children of a server: its user's other sockets, for this host only") {
  const auto row = [](const char* local, const char* state, int user, int inode) {
    return std::string("   0: ") + local + " 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000 " +
           std::to_string(user) + " 0 " + std::to_string(inode) + " 1\n";
  };
  const std::string server = row("0100007F:2CAA", "0A", 998, 100);  // 11434
  const std::string others = row("0100007F:A0FA", "0A", 998, 300) + row("0100007F:A0FB", "0A", 998, 200) +
                             row("0100007F:A0FC", "0A", 998, 50) +                          // made by another processor
                             row("0100007F:A0FD", "0A", 1000, 400) +                        // another user's
                             row("00000000:A0FE", "0A", 998, 500) +                         // for everybody
                             row("0100007F:A0FF", "01", 998, 600) +                         // no listener
                             row("0100007F:0277", "0A", 998, 700) +                         // privileged
                             row("00000000000000000000000001000000:A0FB", "0A", 998, 201);  // of 41211, by IPv6
  const ListeningSockets sockets = ListeningSockets::of_table(kTableHead + server + others);
  CHECK(sockets.child_ports(loopback(11434), 8) == std::vector<std::uint16_t>{41210, 41211, 41212});
  CHECK(sockets.child_ports(loopback(11434), 1) == std::vector<std::uint16_t>{41210});
  CHECK(sockets.child_ports(loopback(11435), 8).empty());
  CHECK(ListeningSockets::of_table(others).child_ports(loopback(11434), 8).empty());
}

TEST_CASE("the listening socket in the kernel's tables") {
  const std::string v4 = std::string(kTableHead) +
                         "   0: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 0 11 1\n"
                         "   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 22 1\n"
                         "   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 34 1\n"
                         "   3: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 33 1\n"
                         "   4: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 44 1\n"
                         "broken line\n";
  const ListeningSockets in_v4 = ListeningSockets::of_table(v4);
  CHECK(in_v4.all().size() == 4);
  CHECK(in_v4.inode(loopback(8080)) == 44U);  // not the established one; its address before all addresses
  CHECK(in_v4.inode(loopback(8081)) == 33U);  // the older one of two that share the address
  CHECK_FALSE(in_v4.inode(loopback(8082)).has_value());
  CHECK_FALSE(in_v4.inode(v6_loopback(8080)).has_value());  // all IPv4 addresses are no IPv6 one
  Endpoint other = loopback(8080);
  other.address[15] = 9;
  CHECK(in_v4.inode(other) == 22U);

  const std::string v6 =
      "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 55 1\n"
      "   1: 00000000000000000000000000000000:1F91 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 66 1\n"
      "   2: 0000000000000000FFFF00000100007F:1F92 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 77 1";
  const ListeningSockets in_v6 = ListeningSockets::of_table(v6);
  CHECK(in_v6.inode(v6_loopback(8080)) == 55U);
  CHECK(in_v6.inode(loopback(8081)) == 66U);  // a dual-stack socket
  CHECK(in_v6.inode(v6_loopback(8081)) == 66U);
  CHECK(in_v6.inode(loopback(8082)) == 77U);

  TemporaryFolder folder;
  const std::string proc = folder.path();
  CHECK_FALSE(ListeningSockets::read(proc).inode(loopback(8080)).has_value());
  CHECK(remote_endpoints(proc).empty());
  std::filesystem::create_directories(proc + "/net");
  std::ofstream(proc + "/net/tcp") << v4;
  std::ofstream(proc + "/net/tcp6") << v6;
  const ListeningSockets both = ListeningSockets::read(proc);
  CHECK(both.all().size() == 7);
  CHECK(both.inode(loopback(8080)) == 44U);
  CHECK(both.inode(v6_loopback(8080)) == 55U);
  CHECK(remote_endpoints(proc) == std::vector<Endpoint>{loopback(40000)});
}

TEST_CASE("the kernel is asked for its listeners, and says what its tables say") {
  const Listener v4(AF_INET);
  REQUIRE(v4.listens());
  CHECK(ListeningSockets::now().inode(loopback(v4.port())) == v4.inode());
  CHECK(ListeningSockets::read("/proc").inode(loopback(v4.port())) == v4.inode());

  const auto answered = diagnose_listening_sockets(65'536);
  if (!answered) {
    WARN("this kernel does not answer sock_diag: the tables are read instead");
    return;
  }
  const ListeningSockets told(*answered);
  CHECK(told.inode(loopback(v4.port())) == v4.inode());
  CHECK_FALSE(told.inode(v6_loopback(v4.port())).has_value());
  CHECK(diagnose_listening_sockets(1)->size() == 1);
  for (const ListeningSocket& socket : told.all()) {
    if (socket.local == loopback(v4.port())) CHECK(socket.user == ::getuid());
  }

  const Listener v6(AF_INET6);
  if (!v6.listens()) return;  // no IPv6 here
  CHECK(ListeningSockets(*diagnose_listening_sockets(65'536)).inode(v6_loopback(v6.port())) == v6.inode());
}
