#include "collectors/ceiling/topology.h"

#include "collectors/ceiling/cgroup.h"
#include "collectors/ceiling/system_files.h"
#include "metrics/base/result.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

namespace rooflined::ceiling {
namespace {

const std::string kCpuFolder = "/sys/devices/system/cpu";

constexpr unsigned kCountsTried = 32;

std::vector<int> process_affinity() {
  std::vector<int> cpus;
  // The kernel refuses a mask smaller than its own; 65536 CPUs is above any build of it.
  constexpr std::size_t kCpusMax = 65536;
  cpu_set_t* const mask = CPU_ALLOC(kCpusMax);
  if (mask == nullptr) return cpus;
  const std::size_t size = CPU_ALLOC_SIZE(kCpusMax);
  CPU_ZERO_S(size, mask);
  if (sched_getaffinity(0, size, mask) == 0) {
    for (std::size_t cpu = 0; cpu < kCpusMax; ++cpu) {
      if (CPU_ISSET_S(cpu, size, mask)) cpus.push_back(static_cast<int>(cpu));
    }
  }
  CPU_FREE(mask);
  return cpus;
}

std::vector<int> list_file(const std::string& root, const std::string& path) {
  const auto text = read_system_file(root, path);
  return text ? parse_cpu_list(*text) : std::vector<int>();
}

// Both ascending; an empty second list allows all.
std::vector<int> common(const std::vector<int>& all, const std::vector<int>& allowed) {
  if (allowed.empty()) return all;
  std::vector<int> both;
  std::set_intersection(all.begin(), all.end(), allowed.begin(), allowed.end(), std::back_inserter(both));
  return both;
}

std::vector<int> usable_cpus(const std::string& root, const std::optional<std::vector<int>>& affinity,
                             const std::vector<int>& cpuset) {
  const std::vector<int> online = list_file(root, kCpuFolder + "/online");
  std::vector<int> allowed = affinity ? *affinity : root == "/" ? process_affinity() : online;
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
  allowed = online.empty() ? allowed : common(online, allowed);
  // A stale or foreign cpuset file (a container that shows the host's) must not leave nothing.
  const std::vector<int> in_cpuset = common(allowed, cpuset);
  return in_cpuset.empty() ? allowed : in_cpuset;
}

// The E cores of a hybrid processor: those that the kernel calls so (Intel), or whose capacity is under the largest
// (Arm big.LITTLE).
std::vector<int> efficient_cpus(const std::string& root) {
  std::vector<int> efficient = list_file(root, "/sys/devices/cpu_atom/cpus");
  if (!efficient.empty()) return efficient;
  std::map<int, std::uint64_t> capacities;
  std::uint64_t largest = 0;
  for (const int cpu : numbered_entries(root, kCpuFolder, "cpu")) {
    const auto capacity = read_system_integer(root, kCpuFolder + "/cpu" + std::to_string(cpu) + "/cpu_capacity");
    if (!capacity) continue;
    capacities[cpu] = *capacity;
    largest = std::max(largest, *capacity);
  }
  for (const auto& [cpu, capacity] : capacities) {
    if (capacity < largest) efficient.push_back(cpu);
  }
  return efficient;
}

std::map<int, int> nodes_by_cpu(const std::string& root) {
  std::map<int, int> nodes;
  for (const int node : numbered_entries(root, "/sys/devices/system/node", "node")) {
    for (const int cpu : list_file(root, "/sys/devices/system/node/node" + std::to_string(node) + "/cpulist")) {
      nodes[cpu] = node;
    }
  }
  return nodes;
}

std::vector<int> siblings_of(const std::string& root, int cpu) {
  const std::string folder = kCpuFolder + "/cpu" + std::to_string(cpu) + "/topology/";
  std::vector<int> siblings = list_file(root, folder + "core_cpus_list");
  if (siblings.empty()) siblings = list_file(root, folder + "thread_siblings_list");  // before Linux 5.3
  return siblings;
}

}  // namespace

unsigned Topology::physical_cores() const {
  return static_cast<unsigned>(
      std::count_if(cpus.begin(), cpus.end(), [](const Cpu& cpu) { return cpu.sibling_rank == 0; }));
}

unsigned Topology::efficient_cores() const {
  return static_cast<unsigned>(
      std::count_if(cpus.begin(), cpus.end(), [](const Cpu& cpu) { return cpu.sibling_rank == 0 && cpu.efficient; }));
}

unsigned Topology::threads_max() const {
  const auto logical = static_cast<unsigned>(cpus.size());
  if (!quota_cpus || *quota_cpus >= static_cast<double>(logical)) return std::max(1U, logical);
  return std::max(1U, static_cast<unsigned>(std::floor(*quota_cpus)));
}

Topology read_topology(const std::string& root, const std::optional<std::vector<int>>& affinity) {
  Topology topology;
  const CgroupLimits limits = read_cgroup_limits(root);
  topology.quota_cpus = limits.cpus;
  topology.memory_nodes = common(list_file(root, "/sys/devices/system/node/has_memory"), limits.cpuset_nodes);
  const std::map<int, int> nodes = nodes_by_cpu(root);
  const std::vector<int> efficient = efficient_cpus(root);
  std::map<int, int> usable_of_core;
  for (const int id : usable_cpus(root, affinity, limits.cpuset_cpus)) {
    Cpu cpu;
    cpu.id = id;
    if (const auto node = nodes.find(id); node != nodes.end()) cpu.node = node->second;
    cpu.efficient = std::binary_search(efficient.begin(), efficient.end(), id);
    const std::vector<int> siblings = siblings_of(root, id);
    const int core = siblings.empty() ? id : siblings.front();
    cpu.sibling_rank = usable_of_core[core]++;
    cpu.core = core;
    topology.cpus.push_back(cpu);
  }
  if (topology.cpus.empty()) topology.cpus.push_back(Cpu{});
  return topology;
}

bool keep_nodes(Topology& topology, const std::vector<int>& nodes) {
  if (nodes.empty()) return true;
  std::erase_if(topology.cpus,
                [&](const Cpu& cpu) { return std::find(nodes.begin(), nodes.end(), cpu.node) == nodes.end(); });
  return !topology.cpus.empty();
}

std::vector<unsigned> thread_counts(const Topology& topology) {
  const unsigned cores = topology.physical_cores();
  std::set<unsigned> counts = {1U, std::max(1U, cores / 2), cores, static_cast<unsigned>(topology.cpus.size())};
  if (const unsigned efficient = topology.efficient_cores(); efficient > 0 && efficient < cores) {
    counts.insert(cores - efficient);
    for (unsigned count = 2; count <= std::min(cores, kCountsTried); ++count) counts.insert(count);
  }
  std::set<unsigned> limited;
  for (const unsigned count : counts) limited.insert(std::min(count, topology.threads_max()));
  return {limited.begin(), limited.end()};
}

std::vector<int> placement(const Topology& topology, unsigned threads) {
  ROOFLINED_CHECK(threads >= 1 && threads <= topology.cpus.size());
  // The place in the row of its own node makes nodes take turns: first the first CPU of each node, then the second
  // ones.
  struct Place {
    int sibling_rank;
    bool efficient;
    int place_in_node;
    int node;
    int id;
  };
  std::map<std::tuple<int, bool, int>, int> seen;
  std::vector<Place> places;
  for (const Cpu& cpu : topology.cpus) {
    const int place = seen[{cpu.sibling_rank, cpu.efficient, cpu.node}]++;
    places.push_back({cpu.sibling_rank, cpu.efficient, place, cpu.node, cpu.id});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.sibling_rank, a.efficient, a.place_in_node, a.node, a.id) <
           std::tie(b.sibling_rank, b.efficient, b.place_in_node, b.node, b.id);
  });
  places.resize(threads);
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return std::tie(a.node, a.id) < std::tie(b.node, b.id); });
  std::vector<int> cpus;
  for (const Place& place : places) cpus.push_back(place.id);
  return cpus;
}

}  // namespace rooflined::ceiling
