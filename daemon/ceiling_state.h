// What is remembered of the ceiling across restarts: the last eight confirmed results of this machine.
//
//   file:  ceiling.json in the state directory {version, identity, adopted, results[]}; oldest result first
//
// `rooflined membw --adopt` writes it and the daemon reads it, and the other way round. A save is atomic and fsynced:
// at any instant the file is the old one or the new one. Nothing here throws; a file that is broken, too large, of
// another version or of another machine is an error or a fresh start, never a crash. Threads: any, one at a time for
// each file.

#pragma once

#include "collectors/ceiling/identity.h"
#include "collectors/ceiling/measure.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rooflined::daemon {

inline constexpr std::size_t kResultsKept = 8;

struct ConfirmedResult {
  WallTime measured_at;
  BytesPerSecond ceiling = 0;
  BytesPerSecond median = 0;
  std::string kernel;
  unsigned threads = 0;
  Bytes working_set = 0;
  bool cache_inflated = false;

  double median_to_best() const { return ceiling > 0 ? median / ceiling : 0; }
};

// Requires: measurement.adoptable().
ConfirmedResult confirmed_result(const ceiling::Measurement& measurement, WallTime measured_at);

struct CeilingState {
  ceiling::MachineIdentity identity;
  std::vector<ConfirmedResult> results;  // oldest first, at most kResultsKept

  void add(ConfirmedResult result);
  // The second highest of the results kept: the highest is often a lucky one. Of one result, that one.
  const ConfirmedResult* adopted() const;
};

// The results in `directory` where they are those of `identity`, else none of them. What was wrong with the file, or
// with the machine, is one log line; a missing file is none.
CeilingState load_ceiling_state(const std::string& directory, const ceiling::MachineIdentity& identity);
Status save_ceiling_state(const std::string& directory, const CeilingState& state);

// The text of the file; separate for tests and the fuzz target.
std::string ceiling_state_text(const CeilingState& state);
Result<CeilingState> parse_ceiling_state(std::string_view text);

}  // namespace rooflined::daemon
