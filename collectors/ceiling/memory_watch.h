// Says when a running probe begins to cost others their memory: the kernel reclaims or compacts, tasks wait for memory,
// or the free memory falls under the watermarks, behind which reclaiming begins.
//
//   in:   /proc under `root`, once at the start and at every look
//   out:  nothing, or the reason to end the probe
//
// A look costs three small files: every 20 ms is no load. Threads: one.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/units.h"

#include <cstdint>
#include <string>

namespace rooflined::ceiling {

class MemoryWatch {
 public:
  explicit MemoryWatch(std::string root);

  // Errors, all kLimit: "reclaim", "pressure", "memory".
  Status look() const;

 private:
  std::string root_;
  std::uint64_t reclaim_events_;
  std::uint64_t stalled_us_;  // absent where the kernel keeps no pressure: then always 0
  Bytes kept_;                // below the watermarks
};

}  // namespace rooflined::ceiling
