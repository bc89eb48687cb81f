// What is remembered of the ceiling across restarts: the last eight confirmed results of this machine, the suspect
// ones, the last measurement with all its cells, and the probes for models that fit into the caches.
//
//   file:  ceiling.json in the state directory {version, identity, adopted, results[], suspects[], cache_probes[],
//          observed, last}; oldest first. Files without the later parts are of an earlier build and load, too.
//
// `rooflined membw --adopt` and the daemon both write it: each reads, changes and replaces it under a lock, so that no
// result is lost. Nothing here throws; a file that is broken, too large, of another version or of another machine is an
// error or a fresh start, never a crash. Threads: any.

#pragma once

#include "collectors/ceiling/cache_probes.h"
#include "collectors/ceiling/history.h"
#include "collectors/ceiling/identity.h"
#include "collectors/ceiling/measure.h"
#include "collectors/ceiling/measurement_plan.h"
#include "collectors/ceiling/observed_rate.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rooflined::daemon {

struct LastMeasurement {
  WallTime measured_at;
  ceiling::Measurement measurement;
};

struct CeilingState {
  ceiling::MachineIdentity identity;
  ceiling::History history;
  ceiling::CacheProbes cache_probes;
  std::optional<ceiling::ObservedRate::Kept> observed;  // of a node without an idle window
  std::optional<LastMeasurement> last;                  // whatever its verdict

  // What a measurement means for the ceiling: kAdopted, kSuspect or kUnstable.
  ceiling::Outcome take(const ceiling::Measurement& measurement, WallTime measured_at);
  // One at the size of a model: kAdopted or kUnstable.
  ceiling::Outcome take_cache_probe(Bytes working_set, const ceiling::Measurement& measurement, WallTime measured_at);
  // Of the newest result that counts; absent without any. A year where it lies in the future: a clock was wrong then,
  // or is now.
  std::optional<Duration> age(WallTime now) const;
};

std::string ceiling_state_path(const std::string& directory);

// The state in `directory` where it is that of `identity`, else an empty one. What was wrong with the file, or with the
// machine, is one log line; a missing file is none.
CeilingState load_ceiling_state(const std::string& directory, const ceiling::MachineIdentity& identity);

struct CeilingUpdate {
  CeilingState state;
  Status saved;
};
// Changes the file: what it holds now, or `held` where that is nothing of this machine, then `change`. The changed
// state comes back even where it could not be saved.
CeilingUpdate update_ceiling_state(const std::string& directory, const CeilingState& held,
                                   const std::function<void(CeilingState&)>& change);

// The text of the file; separate for tests and the fuzz target.
std::string ceiling_state_text(const CeilingState& state);
Result<CeilingState> parse_ceiling_state(std::string_view text);

}  // namespace rooflined::daemon
