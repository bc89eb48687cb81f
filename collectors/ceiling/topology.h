// Which CPUs the workers may use, how many workers to try, and where each of them sits.
//
// Usable is what is online, in the affinity mask and in the cpuset. The cgroup's quota limits the count,
// since more spinning workers than the quota are all stopped together. Threads: any.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rooflined::ceiling {

struct Cpu {
  int id = 0;
  int node = 0;            // NUMA node
  int core = 0;            // lowest CPU id of the core, usable or not
  int sibling_rank = 0;    // 0 is the first usable CPU of its core
  bool efficient = false;  // an E core of a hybrid processor
};

struct Topology {
  std::vector<Cpu> cpus;  // usable, by id
  // Those with memory that this process may use; empty where the kernel does not say. A node may have only one of both:
  // CPUs whose memory lies elsewhere, or memory (CXL, HBM) without CPUs.
  std::vector<int> memory_nodes;
  std::optional<double> quota_cpus;

  unsigned physical_cores() const;
  unsigned efficient_cores() const;
  // Never under 1: half a CPU still runs one worker, slowly.
  unsigned threads_max() const;
  // One worker alone would be stopped by the quota: what it measures is the quota, not the memory.
  bool throttled() const { return quota_cpus && *quota_cpus < 1.0; }
};

// `affinity` absent: the mask of this process where `root` is "/", else everything online.
Topology read_topology(const std::string& root, const std::optional<std::vector<int>>& affinity);

// Leaves the CPUs of these NUMA nodes only; all of them where `nodes` is empty. False when none would be left.
bool keep_nodes(Topology& topology, const std::vector<int>& nodes);

// 1, half the physical cores, all of them, all logical CPUs. On a hybrid processor, where no rule of thumb holds, every
// count up to 32 and the P cores alone. Ascending, without repetition, at most threads_max().
std::vector<unsigned> thread_counts(const Topology& topology);

// The CPUs for `threads` workers, ordered so that neighbours share a NUMA node. One worker a core before any sibling, P
// cores before E cores, nodes in turn. A larger count holds every CPU of a smaller one.
// Requires: 1 ≤ threads ≤ topology.cpus.size().
std::vector<int> placement(const Topology& topology, unsigned threads);

}  // namespace rooflined::ceiling
