#include "collectors/server/listening_sockets.h"

#include "collectors/server/socket_diag.h"
#include "metrics/base/file_start.h"
#include "metrics/base/ip_address.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace rooflined::server {
namespace {

constexpr std::size_t kTableBytesMax = 16 * 1024 * 1024;
constexpr std::size_t kSocketsMax = 65'536;
constexpr std::size_t kMappedPrefix = 12;

constexpr IpAddress kAnyV6{};
constexpr IpAddress kAnyV4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0};

bool is_v4(const IpAddress& address) {
  return std::equal(kAnyV4.begin(), kAnyV4.begin() + kMappedPrefix, address.begin());
}

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The kernel prints an address as 32-bit words of its own byte order (net/ipv4/tcp_ipv4.c, net/ipv6/tcp_ipv6.c).
std::optional<IpAddress> table_address(std::string_view hex) {
  IpAddress address = kAnyV4;
  const std::size_t words = hex.size() / 8;
  if (hex.size() % 8 != 0 || (words != 1 && words != 4)) return std::nullopt;
  const std::size_t first = words == 1 ? kMappedPrefix : 0;
  for (std::size_t word = 0; word < words; ++word) {
    const auto value = number(hex.substr(word * 8, 8), 16);
    if (!value) return std::nullopt;
    const std::uint32_t bits = static_cast<std::uint32_t>(*value);
    std::array<std::uint8_t, sizeof(bits)> bytes{};
    std::copy_n(reinterpret_cast<const std::uint8_t*>(&bits), sizeof(bits), bytes.begin());
    std::copy(bytes.begin(), bytes.end(), address.begin() + static_cast<std::ptrdiff_t>(first + word * 4));
  }
  return address;
}

// "0100007F:1F90"
std::optional<Endpoint> table_endpoint(std::string_view field) {
  const std::size_t colon = field.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto address = table_address(field.substr(0, colon));
  const auto port = number(field.substr(colon + 1), 16);
  if (!address || !port || *port > 65'535) return std::nullopt;
  return Endpoint{*address, static_cast<std::uint16_t>(*port)};
}

std::string_view next_field(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view field = line.substr(0, line.find(' '));
  line.remove_prefix(field.size());
  return field;
}

struct TableRow {
  ListeningSocket socket;
  Endpoint remote;
  std::string_view state;  // of include/net/tcp_states.h, in hexadecimal
};

// "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 …"
std::optional<TableRow> table_row(std::string_view line) {
  constexpr std::size_t kUserField = 7;
  constexpr std::size_t kInodeField = 9;
  std::array<std::string_view, kInodeField + 1> fields;
  for (std::string_view& field : fields) field = next_field(line);
  const auto local = table_endpoint(fields[1]);
  const auto remote = table_endpoint(fields[2]);
  const auto user = number(fields[kUserField], 10);
  const auto inode = number(fields[kInodeField], 10);
  if (!local || !user || !inode) return std::nullopt;
  return TableRow{{*local, *user, *inode}, remote.value_or(Endpoint{}), fields[3]};
}

// Calls `take` for each socket of the table until it has had enough and says false.
template <typename Take>
void for_each_row(std::string_view table, Take take) {
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    const auto row = table_row(table.substr(0, end));
    table.remove_prefix(std::min(end + 1, table.size()));
    if (row && !take(*row)) return;
  }
}

}  // namespace

ListeningSockets ListeningSockets::now() {
  auto answered = diagnose_listening_sockets(kSocketsMax);
  return answered ? ListeningSockets(std::move(*answered)) : read("/proc");
}

ListeningSockets ListeningSockets::read(const std::string& proc) {
  ListeningSockets both = of_table(read_file_start(proc + "/net/tcp", kTableBytesMax));
  const ListeningSockets v6 = of_table(read_file_start(proc + "/net/tcp6", kTableBytesMax));
  both.sockets_.insert(both.sockets_.end(), v6.sockets_.begin(), v6.sockets_.end());
  return both;
}

ListeningSockets ListeningSockets::of_table(std::string_view table) {
  constexpr std::string_view kListen = "0A";
  std::vector<ListeningSocket> sockets;
  for_each_row(table, [&](const TableRow& row) {
    if (row.state == kListen && row.socket.inode != 0) sockets.push_back(row.socket);
    return sockets.size() < kSocketsMax;
  });
  return ListeningSockets(std::move(sockets));
}

// Where several share an address (SO_REUSEPORT) the oldest: the same one each time.
const ListeningSocket* ListeningSockets::find(const Endpoint& endpoint) const {
  const auto rank = [&](const ListeningSocket& socket) {
    const IpAddress& address = socket.local.address;
    if (socket.local.port != endpoint.port) return 0;
    if (address == endpoint.address) return 3;
    if (address == (is_v4(endpoint.address) ? kAnyV4 : kAnyV6)) return 2;
    return address == kAnyV6 ? 1 : 0;  // a dual-stack socket
  };
  const ListeningSocket* best = nullptr;
  for (const ListeningSocket& socket : sockets_) {
    if (rank(socket) == 0) continue;
    const int better = best == nullptr ? 1 : rank(socket) - rank(*best);
    if (better > 0 || (better == 0 && socket.inode < best->inode)) best = &socket;
  }
  return best;
}

std::optional<std::uint64_t> ListeningSockets::inode(const Endpoint& endpoint) const {
  const ListeningSocket* found = find(endpoint);
  if (found == nullptr) return std::nullopt;
  return found->inode;
}

std::vector<std::uint16_t> ListeningSockets::child_ports(const Endpoint& endpoint, std::size_t ports_max) const {
  constexpr std::uint16_t kPrivilegedPortMax = 1023;
  const ListeningSocket* parent = find(endpoint);
  if (parent == nullptr) return {};
  std::vector<ListeningSocket> children;
  for (const ListeningSocket& socket : sockets_) {
    const bool other = socket.inode != parent->inode && socket.user == parent->user;
    if (other && is_loopback(socket.local.address) && socket.local.port > kPrivilegedPortMax)
      children.push_back(socket);
  }
  // Each processor numbers sockets from blocks of 1,024 of its own (get_next_ino() of fs/inode.c): a later one has the
  // higher number most often, and a child may have a lower one than its parent.
  std::sort(children.begin(), children.end(),
            [](const ListeningSocket& a, const ListeningSocket& b) { return a.inode > b.inode; });
  std::vector<std::uint16_t> ports;
  for (const ListeningSocket& child : children) {
    // One on each loopback address is one child.
    const bool known = std::find(ports.begin(), ports.end(), child.local.port) != ports.end();
    if (!known && ports.size() < ports_max) ports.push_back(child.local.port);
  }
  return ports;
}

std::vector<Endpoint> remote_endpoints(const std::string& proc) {
  constexpr std::string_view kEstablished = "01";
  std::vector<Endpoint> endpoints;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    for_each_row(read_file_start(proc + table, kTableBytesMax), [&](const TableRow& row) {
      if (row.state == kEstablished) endpoints.push_back(row.remote);
      return endpoints.size() < kSocketsMax;
    });
  }
  return endpoints;
}

}  // namespace rooflined::server
