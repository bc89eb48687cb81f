// The probe's memory and the workers that read it.
//
// One buffer for all cells, filled with random words; one thread a CPU, pinned. Every NUMA node with workers has a
// range of the buffer, which only they fill and read, so that its pages lie on that node. They take it in pieces of a
// MiB, whoever is free the next one: with fixed parts the slowest worker sets the rate (8 % of the median between two
// virtual CPUs). A range is read once, or as often as it takes to last 20 ms. Workers stamp their own start and end: a
// clock of the coordinator reads 12 % high at 2 GB and several times too high on small sets.
//
// Workers look at the stop page before every block, so a stopped repetition reads at most one block more a worker; one
// that waits for a CPU in the middle of its block is brought out of it by a signal. At the first block and every 0.1 ms
// they look for a knock (stop_page.h), interrupt the others, and hold still as long as there is one; a repetition that
// was held up is repeated, up to four times. Threads: construct and call from one thread; the stop page may be set by
// anyone.

#pragma once

#include "collectors/ceiling/kernels.h"
#include "collectors/ceiling/stop_page.h"
#include "collectors/ceiling/sweep.h"
#include "collectors/ceiling/topology.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <memory>
#include <vector>

namespace rooflined::ceiling {

// Over all streams of a kernel. A quarter of the MiB that is promised, since it costs nothing measurable.
inline constexpr Bytes kBlockBytes = 256 * kKiB;
inline constexpr Duration kRepetitionMin = std::chrono::milliseconds(20);

class WorkerPool : public RepetitionSource {
 public:
  struct Options {
    Bytes buffer_bytes = 0;
    Bytes huge_bytes = 0;  // this much of the buffer asks for huge pages
    unsigned threads_max = 1;
    const KernelFunctions* functions = nullptr;
  };

  // Maps the buffer, starts and pins the workers, and fills the buffer. Errors: no memory, no threads, stopped (kBusy).
  // Requires: `topology` and `stop` outlive the pool; threads_max ≤ topology.cpus.size().
  static Result<std::unique_ptr<WorkerPool>> create(const Options& options, const Topology& topology,
                                                    const StopPage& stop);
  // Gives the buffer back piece by piece.
  ~WorkerPool() override;

  // From here on kInterruptSignal makes a worker that gets it leave its block at once. For a process that is a probe.
  static void heed_interrupts();

  // Errors: kBusy at "stopped". Requires: threads ≤ threads_max.
  Result<Repetition> repeat(std::size_t kernel, unsigned threads) override;
  // The same by `threads` workers of one node, over that node's range. Requires: 1 ≤ threads ≤ workers_on(node).
  Result<Repetition> repeat_on(int node, std::size_t kernel, unsigned threads);
  unsigned workers_on(int node) const;

  // CPUs that refused a worker: the thread runs wherever the scheduler puts it.
  unsigned unpinned() const;
  // Of the workers' time in a repetition that counts although it was held up, the part that they held still: so much
  // low it reads. The most of all repetitions; 0 where none was.
  double held_share() const;
  // Bytes read or written since the start, by all workers, counted block by block.
  Bytes bytes_moved() const;

 private:
  struct Shared;
  explicit WorkerPool(std::unique_ptr<Shared> shared);

  std::unique_ptr<Shared> shared_;
};

}  // namespace rooflined::ceiling
