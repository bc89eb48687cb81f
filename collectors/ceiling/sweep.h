// Chooses the ceiling: which kernel with how many workers is fastest, and how far its figure can be trusted.
//
//   in:   repetitions, one at a time, from a RepetitionSource (the worker pool, or a script in a test)
//   out:  every cell with all its samples, and the winner's fresh repetitions
//
// The sweep only chooses: the maximum of many noisy cells reads 4 to 20 % high. The stable cell with the highest median
// runs again alone, and only if it is stable again its best is the ceiling. No clock here: time is the sum of what the
// repetitions took. Threads: one.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace rooflined::ceiling {

// Median of the samples; of an even number of them the mean of the middle two. 0 without any.
double median(std::vector<double> samples);

// A quarter below the best is noise that a shared host shows for seconds; more is a disturbance. Exactly 0.75 is
// stable.
inline constexpr double kStableRatio = 0.75;

// One kernel with one number of workers.
struct Cell {
  std::size_t kernel = 0;  // index into kKernels
  unsigned threads = 0;
  std::vector<BytesPerSecond> samples;  // in the order in which they were taken; the discarded first one is not here
  BytesPerSecond best = 0;
  BytesPerSecond median = 0;
  bool stable = false;
  double median_to_best() const { return best > 0 ? median / best : 0; }
};

struct Repetition {
  Bytes bytes = 0;
  Duration elapsed{0};  // last end less first start, stamped by the workers
};

class RepetitionSource {
 public:
  virtual ~RepetitionSource() = default;
  // One repetition over the whole working set. An error ends the sweep.
  virtual Result<Repetition> repeat(std::size_t kernel, unsigned threads) = 0;
};

// Instead of the first kernel with every thread count, and the others with those that stand up to it.
struct SweepStart {
  std::size_t kernel = 0;
  unsigned threads = 0;
  bool alone = false;  // only this cell, and only its confirmation; else it and its neighbours
};

struct SweepOptions {
  std::vector<std::size_t> kernels;     // first the one that chooses the thread counts
  std::vector<unsigned> thread_counts;  // ascending
  unsigned repetitions = 5;             // counted, of each cell
  unsigned confirmations = 9;           // counted, of the winner
  Duration budget = from_seconds(12);   // kernels that no longer fit are left out
  std::optional<SweepStart> start;
};

struct Progress {
  std::size_t kernel = 0;
  unsigned threads = 0;
  unsigned done = 0;   // repetitions
  unsigned total = 0;  // as far as known now; may shrink
};
using ProgressCallback = std::function<void(const Progress&)>;

struct Sweep {
  std::vector<Cell> cells;
  std::optional<Cell> confirmation;  // of the winner; absent when no cell is stable
  // Repetitions whose clock stood still: their rate would be infinite.
  unsigned repetitions_discarded = 0;
  std::size_t kernels_left_out = 0;

  bool confirmed() const { return confirmation && confirmation->stable; }
};

// Requires: at least one kernel and one thread count.
Result<Sweep> run_sweep(const SweepOptions& options, RepetitionSource& source, const ProgressCallback& progress);

// One cell alone: the discarded repetition, then `count` counted ones.
Result<Cell> run_cell(std::size_t kernel, unsigned threads, unsigned count, RepetitionSource& source,
                      const ProgressCallback& progress);

}  // namespace rooflined::ceiling
