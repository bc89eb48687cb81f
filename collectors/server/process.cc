#include "collectors/server/process.h"

#include "collectors/server/listening_sockets.h"
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

constexpr std::size_t kProcessesMax = 65'536;
constexpr std::size_t kDescriptorsMax = 65'536;
constexpr std::size_t kPathBytesMax = 4096;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
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

Result<std::int64_t> find_listener(const Endpoint& endpoint, const ProcessOptions& options) {
  const std::string where = fmt::format("port {}", endpoint.port);
  const std::optional<std::uint64_t> inode = ListeningSockets::read(options.proc).inode(endpoint);
  if (!inode) return Error{ErrorCode::kNotFound, where, "no listening socket in this network namespace"};
  const std::string socket = fmt::format("socket:[{}]", *inode);
  std::optional<std::int64_t> found;
  bool denied = false;
  std::error_code error;
  fs::directory_iterator entry(options.proc, error);
  for (std::size_t seen = 0; !error && entry != fs::directory_iterator() && seen < kProcessesMax; ++seen) {
    const auto process = number(entry->path().filename().string());
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
