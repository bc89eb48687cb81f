#include "daemon/listeners.h"

#include "collectors/server/process.h"

#include <fstream>
#include <iterator>

namespace rooflined::daemon {
namespace {

std::string read_table(const std::string& path) {
  constexpr std::size_t kBytesMax = 16 * 1024 * 1024;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  for (std::istreambuf_iterator<char> it(file), end; it != end && text.size() < kBytesMax; ++it) text.push_back(*it);
  return text;
}

}  // namespace

Listeners Listeners::read(const std::string& proc_root) {
  Listeners listeners;
  listeners.tcp_ = read_table(proc_root + "/net/tcp");
  listeners.tcp6_ = read_table(proc_root + "/net/tcp6");
  return listeners;
}

std::uint64_t Listeners::inode(const Endpoint& endpoint) const {
  const auto in_tcp = server::listening_inode(tcp_, endpoint);
  return in_tcp ? *in_tcp : server::listening_inode(tcp6_, endpoint).value_or(0);
}

}  // namespace rooflined::daemon
