#include "collectors/ceiling/working_set.h"

#include "collectors/ceiling/cgroup.h"
#include "collectors/ceiling/system_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <string_view>

namespace rooflined::ceiling {
namespace {

constexpr Bytes kCacheMultiple = 4;
constexpr Bytes kSizeMin = 64 * kMiB;
constexpr Bytes kSizeWithoutCache = 2 * kGiB;
constexpr Bytes kRamShare = 8;
// Watermarks, and the zones' reserves: about 1 % (the zones of one node are not told apart here).
constexpr Bytes kKeptByNode = 64;
// Page tables (4 MiB for 2 GiB in small pages), stacks and the program itself.
constexpr Bytes kOwnNeed = 16 * kMiB;
// A twentieth of the last 10 s in which a task waited for memory is a machine that has none to spare.
constexpr double kPressureMax = 5.0;

Bytes page_bytes() {
  return static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

// Free pages that user memory must leave in the zones: those below the high watermark, and those that a zone keeps for
// requests that no other zone can serve (the last number of "protection" is the one for user memory).
struct Zone {
  std::uint64_t free = 0;
  std::uint64_t high = 0;
  std::uint64_t protection = 0;

  std::uint64_t kept() const { return std::min(free, high + protection); }
};

std::optional<Bytes> kept_by_zones(std::string_view zoneinfo) {
  std::uint64_t pages = 0;
  bool any = false;
  Zone zone;
  for_each_line(zoneinfo, [&](std::string_view line) {
    line = trimmed(line);
    if (line.starts_with("Node ") && line.find("zone") != std::string_view::npos) {
      pages += zone.kept();
      zone = Zone();
      any = true;
    }
    if (line.starts_with("pages free ")) zone.free = parse_integer(line.substr(11)).value_or(0);
    if (line.starts_with("high ")) zone.high = parse_integer(line.substr(5)).value_or(0);
    if (line.starts_with("protection:") && line.ends_with(')')) {
      line.remove_suffix(1);
      zone.protection = parse_integer(line.substr(line.find_last_of("( ,") + 1)).value_or(0);
    }
  });
  pages += zone.kept();
  if (!any) return std::nullopt;
  return pages * page_bytes();
}

// /proc/buddyinfo: "Node 0, zone Normal 3 1 4 …", free blocks of 1, 2, 4, … pages.
Bytes free_in_blocks_of(std::string_view buddyinfo, Bytes block) {
  Bytes free = 0;
  for_each_line(buddyinfo, [&](std::string_view line) {
    const std::size_t zone = line.find("zone");
    if (zone == std::string_view::npos) return;
    line = trimmed(line.substr(zone + 4));
    line.remove_prefix(std::min(line.find(' '), line.size()));
    Bytes size = page_bytes();
    for (int order = 0; order < 32; ++order, size *= 2) {
      line = trimmed(line);
      if (line.empty()) return;
      const std::size_t end = std::min(line.find(' '), line.size());
      if (size >= block) free += parse_integer(line.substr(0, end)).value_or(0) * size;
      line.remove_prefix(end);
    }
  });
  return free;
}

double pressure_some_avg10(std::string_view text) {
  constexpr std::string_view kKey = "some avg10=";
  const std::size_t at = text.find(kKey);
  if (at == std::string_view::npos) return 0;
  double value = 0;
  std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), value);
  return value;
}

std::string megabytes(Bytes bytes) {
  return fmt::format("{} MB", bytes / 1000000);
}

}  // namespace

MemoryFacts read_memory_facts(const std::string& root) {
  MemoryFacts facts;
  const std::string meminfo = read_system_file(root, "/proc/meminfo").value_or("");
  facts.total = value_of_line(meminfo, "MemTotal").value_or(0) * kKiB;
  const Bytes free = value_of_line(meminfo, "MemFree").value_or(0) * kKiB;
  // About 1 % where the zones cannot be read.
  const Bytes kept = kept_by_zones(read_system_file(root, "/proc/zoneinfo").value_or("")).value_or(facts.total / 64);
  facts.free = free - std::min(free, kept);
  facts.cgroup_room = read_cgroup_limits(root).memory_room;
  facts.pressure_some_avg10 = pressure_some_avg10(read_system_file(root, "/proc/pressure/memory").value_or(""));
  const Bytes huge = read_system_integer(root, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").value_or(0);
  if (huge > 0)
    facts.free_in_huge_pages = free_in_blocks_of(read_system_file(root, "/proc/buddyinfo").value_or(""), huge);
  return facts;
}

void limit_to_nodes(MemoryFacts& memory, const std::string& root, const Topology& topology) {
  std::map<int, std::size_t> cpus_on;
  for (const Cpu& cpu : topology.cpus) ++cpus_on[cpu.node];
  if (cpus_on.size() < 2 && topology.memory_nodes.size() < 2) return;
  const std::string nodes = "/sys/devices/system/node/node";
  for (const auto& [node, cpus] : cpus_on) {
    std::optional<Bytes> free, total;
    for_each_line(read_system_file(root, nodes + std::to_string(node) + "/meminfo").value_or(""),
                  [&](std::string_view line) {  // "Node 0 MemFree:  12 kB"
                    const std::size_t key = line.find("Mem");
                    if (key == std::string_view::npos) return;
                    if (const auto value = value_of_line(line.substr(key), "MemFree")) free = *value * kKiB;
                    if (const auto value = value_of_line(line.substr(key), "MemTotal")) total = *value * kKiB;
                  });
    // Without memory of its own the pages come from another node, which is asked too.
    if (!free || total.value_or(0) == 0) continue;
    const Bytes kept = *total / kKeptByNode;
    const Bytes room = *free - std::min(*free, kept);
    memory.free = std::min(memory.free, room / cpus * topology.cpus.size());
  }
}

Result<WorkingSet> plan_working_set(const MemoryFacts& memory, std::optional<Bytes> llc_bytes,
                                    std::optional<Bytes> requested) {
  if (memory.pressure_some_avg10 > kPressureMax) {
    return Error{ErrorCode::kLimit, "pressure",
                 fmt::format("tasks waited for memory {:.0f} % of the last 10 s", memory.pressure_some_avg10)};
  }
  const Bytes free = std::min(memory.free, memory.cgroup_room.value_or(memory.free));
  const Bytes room = free - std::min(free, kOwnNeed);
  const Bytes least_for_memory = kCacheMultiple * llc_bytes.value_or(0);
  WorkingSet set;
  if (requested) {
    if (*requested > room) {
      return Error{
          ErrorCode::kLimit, "memory",
          fmt::format("{} asked for, {} free without taking page cache", megabytes(*requested), megabytes(room))};
    }
    set.size = *requested;
  } else {
    const Bytes wanted = llc_bytes ? std::max(least_for_memory, kSizeMin) : kSizeWithoutCache;
    set.size = std::min({wanted, memory.total / kRamShare, room});
    if (set.size < kSizeMin) {
      return Error{
          ErrorCode::kLimit, "memory",
          fmt::format("room for {}, at least {} needed (free memory without page cache {}, RAM / 8 {})",
                      megabytes(set.size), megabytes(kSizeMin), megabytes(room), megabytes(memory.total / kRamShare))};
    }
  }
  set.cache_inflated = set.size < least_for_memory;
  return set;
}

}  // namespace rooflined::ceiling
