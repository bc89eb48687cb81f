// Runs one measurement of the ceiling in a child process of this binary, and is that child.
//
//   parent:  Probe::start() → wait(), with stop() from anywhere
//   child:   run_probe_worker(), which `rooflined membw --worker` calls
//
// Threads: start() and wait() on one thread that outlives the probe; stop() on any, and in signal handlers.

#pragma once

#include "collectors/ceiling/measure.h"
#include "collectors/ceiling/probe_process.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <memory>

namespace rooflined::daemon {

class Probe {
 public:
  using Priority = ceiling::ProbeProcess::Priority;

  // The options that travel: thread_counts, working_set, repetitions, start_from, numa_nodes.
  static Result<std::unique_ptr<Probe>> start(const ceiling::Options& options, Priority priority);

  void stop() const noexcept { process_->stop(); }

  // Errors: those of ceiling::measure(), kBusy at "stopped" after stop(), kLimit at "time" after `limit`, kIo when the
  // child ends without a report.
  Result<ceiling::Measurement> wait(Duration limit, const ceiling::ProgressCallback& progress);

 private:
  explicit Probe(std::unique_ptr<ceiling::ProbeProcess> process) : process_(std::move(process)) {}

  std::unique_ptr<ceiling::ProbeProcess> process_;
};

// A default measurement takes 5 to 15 s; a host at a tenth of its speed still ends within this.
inline constexpr Duration kProbeLimit = std::chrono::seconds(120);

// The exit status of the child. Requires: the descriptors of probe_process.h.
int run_probe_worker(const ceiling::Options& options);

}  // namespace rooflined::daemon
