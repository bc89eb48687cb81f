// How many bytes a probe may read: enough to be memory and not cache, and never at anybody's cost.
//
//   in:   the memory of the machine and of the cgroups, the pressure on it, the caches
//   out:  a size, or the reason why there is no room
//
// Free memory only, above the watermarks: page cache is where a model mapped from its file lives, and MemAvailable
// would count it as free. Threads: any.

#pragma once

#include "collectors/ceiling/topology.h"
#include "metrics/base/result.h"
#include "metrics/base/units.h"

#include <optional>
#include <string>

namespace rooflined::ceiling {

struct MemoryFacts {
  Bytes total = 0;
  Bytes free = 0;                    // above the watermarks of its zones
  std::optional<Bytes> cgroup_room;  // absent without a limit
  double pressure_some_avg10 = 0;    // percent of the last 10 s in which some task waited for memory
  // In free blocks of the huge page size; so much may be asked for without making the kernel compact memory.
  Bytes free_in_huge_pages = 0;
};

MemoryFacts read_memory_facts(const std::string& root);
// The working set is spread over the nodes by their CPUs: what is free counts as far as every node has its share.
void limit_to_nodes(MemoryFacts& memory, const std::string& root, const Topology& topology);

struct WorkingSet {
  Bytes size = 0;
  bool cache_inflated = false;  // under 4 × the caches: part of it may come from there
};

// `requested` replaces the size, and the bound of an eighth of the RAM; memory that is not free is refused to it too.
// Errors: kLimit at "memory" (too little room) or "pressure".
Result<WorkingSet> plan_working_set(const MemoryFacts& memory, std::optional<Bytes> llc_bytes,
                                    std::optional<Bytes> requested);

}  // namespace rooflined::ceiling
