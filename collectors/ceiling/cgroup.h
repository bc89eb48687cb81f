// What the control groups of this process leave it: processor time and memory. Versions 1 and 2, and both at once.
//
// Every level from the process's own group up to the root of the hierarchy counts, the tightest wins. Inside a
// container the own group usually is the root. Threads: any.

#pragma once

#include "metrics/base/units.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rooflined::ceiling {

struct CgroupLimits {
  std::optional<double> cpus;  // quota over period, 0.5 is half a CPU; absent without a quota
  // Limit less usage, page cache of the group counted as used; absent without a limit.
  std::optional<Bytes> memory_room;
  // The CPUs and memory nodes that the cpusets leave; empty without a cpuset.
  std::vector<int> cpuset_cpus;
  std::vector<int> cpuset_nodes;
};

CgroupLimits read_cgroup_limits(const std::string& root);

// In how many periods the quota of any of the levels stopped this process's group, since the groups began.
std::uint64_t read_throttled_periods(const std::string& root);

}  // namespace rooflined::ceiling
