#include "collectors/server/process.h"

#include "metrics/base/file_start.h"
#include "metrics/base/ip_address.h"
#include "metrics/base/utf8.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <system_error>

namespace rooflined::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTableBytesMax = 16 * 1024 * 1024;
constexpr std::size_t kProcessesMax = 65'536;
constexpr std::size_t kDescriptorsMax = 65'536;
constexpr std::size_t kPathBytesMax = 4096;
constexpr std::size_t kMappedPrefix = 12;

using Address = std::array<std::uint8_t, 16>;

constexpr Address kAnyV6{};
constexpr Address kAnyV4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0};

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The kernel prints an address as 32-bit words of its own byte order (net/ipv4/tcp_ipv4.c, net/ipv6/tcp_ipv6.c).
std::optional<Address> table_address(std::string_view hex) {
  Address address = kAnyV4;
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
  Endpoint local;
  Endpoint remote;
  bool listening = false;
  bool established = false;
  std::uint64_t user = 0;
  std::uint64_t inode = 0;
};

// "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 …"
std::optional<TableRow> table_row(std::string_view line) {
  constexpr std::size_t kUserField = 7;
  constexpr std::size_t kInodeField = 9;
  constexpr std::string_view kEstablished = "01";  // TCP_ESTABLISHED, TCP_LISTEN of include/net/tcp_states.h
  constexpr std::string_view kListen = "0A";
  std::array<std::string_view, kInodeField + 1> fields;
  for (std::string_view& field : fields) field = next_field(line);
  const auto local = table_endpoint(fields[1]);
  const auto remote = table_endpoint(fields[2]);
  const auto user = number(fields[kUserField], 10);
  const auto inode = number(fields[kInodeField], 10);
  if (!local || !user || !inode) return std::nullopt;
  return TableRow{*local, remote.value_or(Endpoint{}), fields[3] == kListen, fields[3] == kEstablished, *user, *inode};
}

// The next line, nullopt where it is no socket's; `table` is left behind it.
std::optional<TableRow> next_row(std::string_view& table) {
  const std::size_t end = std::min(table.find('\n'), table.size());
  const auto row = table_row(table.substr(0, end));
  table.remove_prefix(std::min(end + 1, table.size()));
  return row;
}

// The next listening socket, of whatever address.
std::optional<TableRow> next_listener(std::string_view& table) {
  while (!table.empty()) {
    const auto row = next_row(table);
    if (row && row->listening && row->inode != 0) return row;
  }
  return std::nullopt;
}

std::optional<TableRow> listener_row(std::string_view table, const Endpoint& endpoint) {
  std::optional<TableRow> on_any;
  while (const auto row = next_listener(table)) {
    if (row->local.port != endpoint.port) continue;
    if (row->local.address == endpoint.address) return row;
    if (row->local.address == kAnyV6 || row->local.address == kAnyV4) on_any = row;
  }
  return on_any;
}

std::string read_link(const std::string& path) {
  std::array<char, kPathBytesMax> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return size <= 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(size));
}

// 1: holds the socket; 0: does not; -1: may not be looked at.
int holds_socket(const std::string& descriptors, const std::string& socket) {
  std::error_code error;
  fs::directory_iterator entry(descriptors, error);
  if (error) return error == std::errc::permission_denied ? -1 : 0;
  for (std::size_t seen = 0; entry != fs::directory_iterator() && seen < kDescriptorsMax; ++seen) {
    if (read_link(entry->path().string()) == socket) return 1;
    entry.increment(error);
    if (error) break;
  }
  return 0;
}

struct Seen {
  bool readable = false;
  dev_t device = 0;
  ino_t inode = 0;
};

Seen look_at(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  const bool kind = S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
  return {kind && ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0, status.st_dev, status.st_ino};
}

}  // namespace

std::optional<std::uint64_t> listening_inode(std::string_view table, const Endpoint& endpoint) {
  const auto row = listener_row(table, endpoint);
  if (!row) return std::nullopt;
  return row->inode;
}

std::vector<Endpoint> listening_endpoints(std::string_view table, std::size_t endpoints_max) {
  std::vector<Endpoint> endpoints;
  while (endpoints.size() < endpoints_max) {
    const auto row = next_listener(table);
    if (!row) break;
    endpoints.push_back(row->local);
  }
  return endpoints;
}

std::vector<Endpoint> remote_endpoints(std::string_view table, std::size_t endpoints_max) {
  std::vector<Endpoint> endpoints;
  while (!table.empty() && endpoints.size() < endpoints_max) {
    const auto row = next_row(table);
    if (row && row->established) endpoints.push_back(row->remote);
  }
  return endpoints;
}

std::vector<std::uint16_t> child_ports(std::string_view table, std::string_view child_table, const Endpoint& endpoint,
                                       std::size_t ports_max) {
  constexpr std::uint64_t kPrivilegedPortMax = 1023;
  const auto parent = listener_row(table, endpoint);
  if (!parent) return {};
  std::vector<TableRow> children;
  while (const auto row = next_listener(child_table)) {
    // Sockets are numbered as they are made.
    const bool later = row->inode > parent->inode && row->user == parent->user;
    if (later && is_loopback(row->local.address) && row->local.port > kPrivilegedPortMax) children.push_back(*row);
  }
  std::sort(children.begin(), children.end(), [](const TableRow& a, const TableRow& b) { return a.inode > b.inode; });
  std::vector<std::uint16_t> ports;
  for (const TableRow& child : children) {
    if (ports.size() < ports_max) ports.push_back(child.local.port);
  }
  return ports;
}

Result<std::int64_t> find_listener(const Endpoint& endpoint, const ProcessOptions& options) {
  const std::string where = fmt::format("port {}", endpoint.port);
  std::optional<std::uint64_t> inode;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    if (!inode) inode = listening_inode(read_file_start(options.proc + table, kTableBytesMax), endpoint);
  }
  if (!inode) return Error{ErrorCode::kNotFound, where, "no listening socket in this network namespace"};
  const std::string socket = fmt::format("socket:[{}]", *inode);
  std::optional<std::int64_t> found;
  bool denied = false;
  std::error_code error;
  fs::directory_iterator entry(options.proc, error);
  for (std::size_t seen = 0; !error && entry != fs::directory_iterator() && seen < kProcessesMax; ++seen) {
    const auto process = number(entry->path().filename().string(), 10);
    if (process && (!found || static_cast<std::int64_t>(*process) < *found)) {
      const int holds = holds_socket(entry->path().string() + "/fd", socket);
      denied = denied || holds < 0;
      if (holds > 0) found = static_cast<std::int64_t>(*process);
    }
    entry.increment(error);
  }
  if (found) return *found;
  if (denied) return Error{ErrorCode::kDenied, where, "the process that listens may not be looked at"};
  return Error{ErrorCode::kNotFound, where, "no process holds the listening socket"};
}

std::string_view found_by_name(FoundBy how) {
  switch (how) {
    case FoundBy::kPath:
      return "its path";
    case FoundBy::kFolder:
      return "the folder of the server's process";
    case FoundBy::kServerRoot:
      break;
  }
  return "the root of the server's process";
}

Result<FoundFile> locate_model(const std::string& told, const Endpoint& endpoint, const ProcessOptions& options) {
  const std::string shown = to_label(told, 256);
  if (told.empty() || told.size() > kPathBytesMax || told.find('\0') != std::string::npos) {
    return Error{ErrorCode::kInvalid, shown, "is no path"};
  }
  const bool absolute = told.front() == '/';
  const Result<std::int64_t> process = find_listener(endpoint, options);
  const std::string links = process ? fmt::format("{}/{}", options.proc, *process) : std::string();
  // The same file by a plain path, which outlives the server, and through the server's own eyes, which are always
  // right.
  std::string plain = absolute ? options.root + told : std::string();
  std::string through;
  if (process) {
    through = absolute ? links + "/root" + told : links + "/cwd/" + told;
    const std::string folder = absolute ? std::string() : read_link(links + "/cwd");
    if (!folder.empty()) plain = options.root + folder + "/" + told;
  }
  const Seen seen_plain = plain.empty() ? Seen{} : look_at(plain);
  const Seen seen_through = through.empty() ? Seen{} : look_at(through);
  const bool same = seen_plain.device == seen_through.device && seen_plain.inode == seen_through.inode;
  if (seen_through.readable && !(seen_plain.readable && same)) {
    return FoundFile{through, absolute ? FoundBy::kServerRoot : FoundBy::kFolder};
  }
  if (seen_plain.readable) return FoundFile{plain, absolute ? FoundBy::kPath : FoundBy::kFolder};
  if (!process) return Error{process.error().code, shown, "not found as it is, and " + process.error().message()};
  return Error{ErrorCode::kNotFound, shown, fmt::format("not readable as it is, nor through process {}", *process)};
}

}  // namespace rooflined::server
