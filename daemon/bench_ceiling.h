// The ceiling that a benchmark is held against: measured now, and believed only as far as the daemon's own history of
// this machine agrees. Constant contention makes a stable result that is too low: nothing within one measurement can
// tell. Threads: one.

#pragma once

#include "collectors/ceiling/history.h"
#include "collectors/ceiling/measure.h"
#include "metrics/base/result.h"
#include "metrics/bench_analysis.h"

#include <functional>
#include <string>
#include <vector>

namespace rooflined::daemon {

struct CeilingChoice {
  std::optional<BytesPerSecond> ceiling;
  std::vector<std::string> notes;
};

// The adopted one of the history where the measurement does not hold, or is under three quarters of it.
CeilingChoice choose_ceiling(const ceiling::Measurement& measured, const ceiling::History& history);

// As `rooflined membw` does. `said` is told what is being done, for a terminal. Errors: kBusy where `stop` ended it.
Result<ceiling::Measurement> measure_ceiling(const std::function<bool()>& stop,
                                             const std::function<void(const std::string&)>& said);

}  // namespace rooflined::daemon
