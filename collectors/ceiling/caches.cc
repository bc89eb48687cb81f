#include "collectors/ceiling/caches.h"

#include "collectors/ceiling/system_files.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <unistd.h>
#endif

namespace rooflined::ceiling {
namespace {

struct Cache {
  std::uint64_t level = 0;
  std::string shared_by;  // what tells it from the others of its level
  Bytes size = 0;
};

// Which cache this is, as far as the kernel says: by the CPUs that share it, else by its number.
std::string cache_key(const std::string& root, const std::string& folder) {
  for (const char* file : {"/shared_cpu_list", "/shared_cpu_map", "/id"}) {
    const auto text = read_system_file(root, folder + file);
    if (text && !trimmed(*text).empty()) return file + std::string(trimmed(*text));
  }
  return "";
}

// The data caches of one CPU.
std::vector<Cache> caches_of(const std::string& root, const std::string& cpu) {
  std::vector<Cache> caches;
  for (const int index : numbered_entries(root, cpu + "/cache", "index")) {
    const std::string folder = cpu + "/cache/index" + std::to_string(index);
    const auto size = read_system_file(root, folder + "/size");
    Cache cache;
    cache.level = read_system_integer(root, folder + "/level").value_or(0);
    cache.size = size ? parse_size(*size).value_or(0) : 0;
    if (cache.level == 0 || cache.size == 0) continue;
    if (trimmed(read_system_file(root, folder + "/type").value_or("")) == "Instruction") continue;
    cache.shared_by = cache_key(root, folder);
    caches.push_back(std::move(cache));
  }
  return caches;
}

// Every CPU's last cache counts, those that it shares with others once. On one machine they need not be of one level:
// the low-power cores of some processors stand outside of the third level, and a fourth level may be smaller than all
// of the third together; then the larger sum is what has to be outrun.
std::optional<Bytes> from_sysfs(const std::string& root) {
  const std::string cpus = "/sys/devices/system/cpu";
  std::map<std::uint64_t, Bytes> by_level;
  Bytes last_caches = 0;
  std::set<std::pair<std::uint64_t, std::string>> counted, counted_last;
  for (const int cpu : numbered_entries(root, cpus, "cpu")) {
    const std::vector<Cache> caches = caches_of(root, cpus + "/cpu" + std::to_string(cpu));
    if (caches.empty()) continue;
    for (const Cache& cache : caches) {
      if (counted.emplace(cache.level, cache.shared_by).second) by_level[cache.level] += cache.size;
    }
    const auto last = std::max_element(caches.begin(), caches.end(),
                                       [](const Cache& a, const Cache& b) { return a.level < b.level; });
    if (counted_last.emplace(last->level, last->shared_by).second) last_caches += last->size;
  }
  for (const auto& [level, size] : by_level) last_caches = std::max(last_caches, size);
  if (last_caches == 0) return std::nullopt;
  return last_caches;
}

#if defined(__x86_64__)
// All caches of the highest level, as many as the CPUs that are there need. A guest is often told the host's sharing.
std::optional<Bytes> from_processor() {
  const long cpus = std::max(1L, ::sysconf(_SC_NPROCESSORS_CONF));
  std::optional<CacheLeaf> largest;
  for (const unsigned leaf : {0x4U, 0x8000001DU}) {
    for (unsigned subleaf = 0; subleaf < 16; ++subleaf) {
      unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
      if (__get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx) == 0) break;
      const auto cache = decode_cache_leaf(eax, ebx, ecx);
      if (!cache) break;
      if (!cache->instruction && (!largest || cache->level > largest->level)) largest = cache;
    }
    if (largest) break;
  }
  if (!largest) return std::nullopt;
  const auto sharing = static_cast<long>(largest->sharing_cpus);
  return largest->size * static_cast<Bytes>((cpus + sharing - 1) / sharing);
}
#else
std::optional<Bytes> from_processor() {
  return std::nullopt;
}
#endif

}  // namespace

std::optional<CacheLeaf> decode_cache_leaf(std::uint32_t eax, std::uint32_t ebx, std::uint32_t ecx) {
  const std::uint32_t type = eax & 31;  // 0 none, 1 data, 2 instruction, 3 unified
  if (type == 0 || type > 3) return std::nullopt;
  CacheLeaf leaf;
  leaf.instruction = type == 2;
  leaf.level = eax >> 5 & 7;
  leaf.sharing_cpus = (eax >> 14 & 0xfff) + 1;
  const Bytes ways = (ebx >> 22) + 1;
  const Bytes partitions = (ebx >> 12 & 0x3ff) + 1;
  const Bytes line = (ebx & 0xfff) + 1;
  leaf.size = ways * partitions * line * (Bytes{ecx} + 1);
  return leaf;
}

std::optional<Bytes> read_llc_bytes(const std::string& root) {
  const auto bytes = from_sysfs(root);
  return bytes || root != "/" ? bytes : from_processor();
}

}  // namespace rooflined::ceiling
