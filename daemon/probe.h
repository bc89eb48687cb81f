// Runs one measurement of the ceiling in a child process of this binary, and is that child.
//
//   parent:  Probe::start() → wait(), with stop() from anywhere
//   child:   run_probe_worker(), which `rooflined membw --worker` calls
//
// With a doorbell, the first packet of a request ends it: the workers see that a packet came and hold still, the
// doorbell's thread judges it and sets the stop page, and 0.1 ms later interrupts the workers that did not answer. It
// is also ended, by SIGKILL, when it begins to cost others their memory (memory_watch.h). What it had measured is
// thrown away.
//
// Threads: start() and wait() on one thread that outlives the probe; stop() on any, and in signal handlers.

#pragma once

#include "collectors/ceiling/measure.h"
#include "collectors/ceiling/memory_watch.h"
#include "collectors/ceiling/probe_process.h"
#include "collectors/tap/doorbell.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace rooflined::daemon {

class Probe {
 public:
  using Priority = ceiling::ProbeProcess::Priority;

  enum class Cause : std::uint8_t {
    kAsked,    // stop()
    kRequest,  // the doorbell rang
    kCapture,  // the doorbell could not hear any more
    kMemory,
  };
  struct Abort {
    Cause cause = Cause::kAsked;
    // From the kernel's stamp on the request's packet to the last load of any worker; 0 where none came after it.
    std::optional<Duration> latency;
    // Of it, until the doorbell's thread heard of the packet.
    std::optional<Duration> heard_after;
  };

  // The options that travel: those that `membw` takes, too. Without a doorbell only stop() ends the probe early: for
  // people who ask for it. Errors: kDenied and the like at "doorbell" where it cannot be opened (nothing runs then),
  // kIo.
  static Result<std::unique_ptr<Probe>> start(const ceiling::Options& options, Priority priority,
                                              const std::optional<tap::Doorbell::Options>& doorbell = std::nullopt);

  void stop() const noexcept { process_->stop(); }

  // Errors: those of ceiling::measure(), kBusy at "stopped" after stop() or a request, kIo at "doorbell" where that
  // failed, kLimit at "memory", "reclaim" or "pressure", kLimit at "time" after `limit`, kIo when the child ends
  // without a report. Once only.
  Result<ceiling::Measurement> wait(Duration limit, const ceiling::ProgressCallback& progress);

  // Why it was ended early, after wait(); nothing where it came to its own end.
  const std::optional<Abort>& abort() const { return abort_; }

 private:
  Probe(std::unique_ptr<ceiling::ProbeProcess> process, std::unique_ptr<tap::Doorbell> doorbell,
        const std::string& root);
  void on_ring(const Result<CaptureTime>& rung);
  void look_at_memory();
  void end(Abort abort, std::optional<Error> error);

  std::unique_ptr<ceiling::ProbeProcess> process_;
  ceiling::MemoryWatch memory_;
  std::mutex mutex_;
  std::optional<Abort> abort_;               // the first cause stays
  std::optional<Error> error_;               // of that cause
  std::unique_ptr<tap::Doorbell> doorbell_;  // last: its thread uses the rest
};

// A default measurement takes 5 to 15 s; a host at a tenth of its speed still ends within this.
inline constexpr Duration kProbeLimit = std::chrono::seconds(120);

// The exit status of the child. Requires: the descriptors of probe_process.h; `doorbell` where that one is there, too.
int run_probe_worker(const ceiling::Options& options, bool doorbell);

}  // namespace rooflined::daemon
