// How far a measurement can be trusted, from what was seen around it, and the words for a person.
//
// Threads: any.

#pragma once

#include "collectors/ceiling/conditions.h"
#include "collectors/ceiling/measure.h"
#include "collectors/ceiling/topology.h"

#include <string>
#include <vector>

namespace rooflined::ceiling {

struct Evidence {
  bool confirmed = false;  // the winner's fresh repetitions were stable
  unsigned threads = 0;    // of the winner
  unsigned threads_max = 0;
  unsigned unpinned = 0;  // workers
  double held_share = 0;  // WorkerPool::held_share()
  Conditions before;
  Surroundings seen;
};

// The first that holds of throttled, contended, unstable, cache resident, confirmed.
Verdict judge(const Measurement& measurement, const Topology& topology, const Evidence& evidence);

// One line for each thing that makes the figure doubtful, or explains it.
std::vector<std::string> warnings_of(const Measurement& measurement, const Topology& topology,
                                     const Evidence& evidence);

}  // namespace rooflined::ceiling
