#include "collectors/ceiling/caches.h"

#include "collectors/ceiling/system_files.h"

#include <algorithm>
#include <set>

#if defined(__x86_64__)
#include <cpuid.h>
#include <unistd.h>
#endif

namespace rooflined::ceiling {
namespace {

std::optional<Bytes> from_sysfs(const std::string& root) {
  const std::string cpus = "/sys/devices/system/cpu";
  std::uint64_t level_max = 0;
  Bytes total = 0;
  std::set<std::string> counted;  // by the CPUs that share it
  for (const int cpu : numbered_entries(root, cpus, "cpu")) {
    const std::string caches = cpus + "/cpu" + std::to_string(cpu) + "/cache";
    for (const int index : numbered_entries(root, caches, "index")) {
      const std::string cache = caches + "/index" + std::to_string(index);
      const std::uint64_t level = read_system_integer(root, cache + "/level").value_or(0);
      const auto size_text = read_system_file(root, cache + "/size");
      const Bytes size = parse_size(size_text ? std::string_view(*size_text) : std::string_view()).value_or(0);
      const std::string type(trimmed(read_system_file(root, cache + "/type").value_or("")));
      if (size == 0 || level == 0 || level < level_max || type == "Instruction") continue;
      if (level > level_max) {
        level_max = level;
        total = 0;
        counted.clear();
      }
      const auto shared = read_system_file(root, cache + "/shared_cpu_list");
      const std::string key(shared ? trimmed(*shared) : std::string_view());
      if (counted.insert(key).second) total += size;
    }
  }
  if (total == 0) return std::nullopt;
  return total;
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
