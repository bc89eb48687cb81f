// Measures the ceiling: one call plans the working set and the workers, sweeps, confirms, and says how far to trust it.
//
//   in:   Options (all defaults are right for a real machine), the stop page, a callback for progress
//   out:  a Measurement with every cell and sample, or the reason why nothing was measured
//
// Takes some seconds and gigabytes: the daemon runs it in a child process (probe_process.h). Bounds: the working set of
// working_set.h, the time of `sweep_budget` and as much again for filling and copying at worst. Threads: one caller; it
// starts its own workers and ends them before it returns.

#pragma once

#include "collectors/ceiling/conditions.h"
#include "collectors/ceiling/stop_page.h"
#include "collectors/ceiling/sweep.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::ceiling {

// Fewer samples say nothing about a median against a best.
inline constexpr unsigned kRepetitionsMin = 5;

// A cell by name: the winner of an earlier measurement.
struct StartFrom {
  std::string kernel;
  unsigned threads = 0;
  // Only this cell, and only its confirming repetitions: a suspect winner again, or a smaller working set. Else it has
  // to prove itself against its neighbours: the other kernels at its thread count, its kernel at the counts next to it.
  bool alone = false;
};

struct Options {
  std::string root = "/";                    // of /proc, /sys and the cgroups
  std::optional<std::vector<int>> affinity;  // instead of the process's own
  std::vector<int> numa_nodes;               // only CPUs and memory of these; empty: all
  // Instead of the whole sweep. A kernel that this binary has not, or more threads than can be placed: the whole sweep,
  // and a warning that says so.
  std::optional<StartFrom> start_from;
  std::vector<unsigned> thread_counts;  // empty: chosen from the topology
  std::optional<Bytes> working_set;     // absent: chosen from the caches
  unsigned repetitions = kRepetitionsMin;
  unsigned confirmations = 9;
  Duration sweep_budget = from_seconds(12);  // for five repetitions; more take more
};

enum class Verdict {
  kConfirmed,  // the ceiling holds for this machine now
  kUnstable,   // no stable cell, or the winner was not stable again
  kThrottled,  // the cgroup's quota is under what the winner needs, or stopped the workers: the quota was measured
  kContended,  // others used the CPUs or the memory meanwhile, or the host took the CPUs away
  // Stable, and of the caches: the working set fits into them. The figure that a small model is to be compared with.
  kCacheResident,
};
std::string_view verdict_name(Verdict verdict);

struct MeasuredCell {
  std::string kernel;
  unsigned threads = 0;
  BytesPerSecond best = 0;
  BytesPerSecond median = 0;
  bool stable = false;
  std::vector<BytesPerSecond> samples;
};

// All workers and all memory of one NUMA node, alone.
struct NodeResult {
  int node = 0;
  BytesPerSecond best = 0;
  BytesPerSecond median = 0;
  bool stable = false;
};

struct Measurement {
  // The winner, and its fresh repetitions: their best is the ceiling. Absent where no cell was stable.
  std::optional<MeasuredCell> winner;
  Verdict verdict = Verdict::kUnstable;

  Bytes working_set = 0;
  std::optional<Bytes> llc;
  bool cache_inflated = false;
  Bytes huge_page_bytes = 0;  // of the buffer, as the kernel gave them
  unsigned repetitions = 0;
  std::string instruction_set;
  std::optional<BytesPerSecond> copy;  // best, read and written bytes together
  Surroundings surroundings;
  // Where the memory of more than one node was read: the winner's kernel on each of them alone. Else empty.
  std::vector<NodeResult> nodes;
  double duration_seconds = 0;
  std::vector<std::string> warnings;
  std::vector<MeasuredCell> cells;  // of the sweep, then copy; none where `start_from` was `alone`

  bool stable() const { return winner && winner->stable; }
  // Stable and undisturbed: of the memory, or of the caches where the working set is that small.
  bool holds() const { return verdict == Verdict::kConfirmed || verdict == Verdict::kCacheResident; }
  // Only such a result may become the ceiling of the machine.
  bool adoptable() const { return verdict == Verdict::kConfirmed; }
  bool huge_pages() const { return huge_page_bytes >= working_set / 2 && huge_page_bytes > 0; }
};

// Errors: kLimit (no room, memory pressure, memory reclaimed during the run), kInvalid (impossible options), kBusy
// (stopped), kIo. A measurement that is unstable is a value, not an error.
Result<Measurement> measure(const Options& options, const StopPage& stop, const ProgressCallback& progress);

}  // namespace rooflined::ceiling
