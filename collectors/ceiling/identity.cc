#include "collectors/ceiling/identity.h"

#include "collectors/ceiling/caches.h"
#include "collectors/ceiling/system_files.h"
#include "metrics/base/utf8.h"

#include <algorithm>
#include <string_view>

namespace rooflined::ceiling {
namespace {

// x86 has "model name"; Arm has none, but implementer and part, which the board's name completes.
std::string cpu_model(const std::string& root) {
  std::string name, implementer, part;
  for_each_line(read_system_file(root, "/proc/cpuinfo").value_or(""), [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string_view key = trimmed(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (key == "model name" && name.empty()) name = value;
    if (key == "CPU implementer" && implementer.empty()) implementer = value;
    if (key == "CPU part" && part.empty()) part = value;
  });
  if (name.empty() && !part.empty()) {
    std::string board = read_system_file(root, "/sys/firmware/devicetree/base/model").value_or("");
    board = board.substr(0, board.find('\0'));
    name = "arm " + implementer + "/" + part + (board.empty() ? "" : " " + board);
  }
  return to_label(name.empty() ? "unknown" : name);
}

}  // namespace

MachineIdentity read_identity(const std::string& root) {
  MachineIdentity identity;
  identity.cpu_model = cpu_model(root);
  identity.kernel_release = to_label(trimmed(read_system_file(root, "/proc/sys/kernel/osrelease").value_or("unknown")));
  identity.memory_bytes =
      value_of_line(read_system_file(root, "/proc/meminfo").value_or(""), "MemTotal").value_or(0) * kKiB;
  identity.llc_bytes = read_llc_bytes(root).value_or(0);
  return identity;
}

bool same_machine(const MachineIdentity& a, const MachineIdentity& b) {
  const auto [less, more] = std::minmax(a.memory_bytes, b.memory_bytes);
  return a.cpu_model == b.cpu_model && a.kernel_release == b.kernel_release && a.llc_bytes == b.llc_bytes &&
         more - less <= more / 50;
}

}  // namespace rooflined::ceiling
