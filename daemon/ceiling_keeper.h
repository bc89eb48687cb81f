// Keeps the ceiling: measures it in a child process when nothing else goes on, remembers it, and says how old it is.
//
//   in:   what the capture thread says of requests (Activity), the settings, the state file
//   out:  the adopted bandwidth, and the ceiling's part of a snapshot
//
// One thread of its own decides and waits for the probe; interrupt() ends a running probe from any other. A measurement
// starts only when no request was in flight for a while and the CPUs are idle; one that fails is tried again later,
// each time after a longer pause.

#pragma once

#include "daemon/activity.h"
#include "daemon/ceiling_state.h"
#include "daemon/probe.h"
#include "metrics/fixed_histogram.h"
#include "metrics/snapshot.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace rooflined::daemon {

class CeilingKeeper {
 public:
  enum class Measure : std::uint8_t { kAuto, kAlways, kNever };

  struct Options {
    Measure measure = Measure::kAuto;
    bool gpu_present = false;  // kAuto: then only once a RAM-bound target exists
    std::string state_directory;
    std::optional<BytesPerSecond> configured;  // replaces measuring
    Duration interval = std::chrono::hours(6);
    Duration idle_for = std::chrono::seconds(60);
    Duration max_age = std::chrono::hours(7 * 24);
    ceiling::Options probe;
    tap::Doorbell::Options doorbell;  // no probe runs without one
  };

  // Requires: `activity` outlives the keeper.
  CeilingKeeper(const Options& options, const Activity& activity);
  ~CeilingKeeper();
  CeilingKeeper(const CeilingKeeper&) = delete;
  CeilingKeeper& operator=(const CeilingKeeper&) = delete;

  void start();
  void stop();
  // A request came: ends a running probe. Any thread; cheap when none runs.
  void interrupt();
  // New settings; a running probe, which follows the old ones, is ended; the state file is read again, too.
  void reload(const Options& options);

  std::optional<BytesPerSecond> bandwidth() const;
  bool stale(WallTime now) const;
  // Fills what the snapshot says of the ceiling and of idleness.
  void describe(WallTime now, Snapshot& snapshot) const;

 private:
  enum class Outcome : std::uint8_t { kAdopted, kUnstable, kSuspect, kAborted };

  void run();
  bool wanted() const;  // a measurement is due
  bool idle();          // updates blocked_
  void measure();
  void record(Outcome outcome);
  Result<ceiling::Measurement> probe(const ceiling::Options& options);
  std::optional<Duration> age(WallTime now) const;
  CeilingState remembered() const;

  const Activity& activity_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  Options options_;
  CeilingState state_;
  std::optional<ceiling::Measurement> last_;
  std::optional<CollectorSnapshot> last_run_;
  std::array<std::uint64_t, 4> outcomes_{};
  FixedHistogram abort_latency_{kAbortLatencyBounds};
  std::map<std::string, bool> blocked_;
  bool idle_ = false;
  MonotonicTime started_;
  MonotonicTime next_try_;
  unsigned failures_ = 0;
  std::uint64_t cpu_idle_ticks_ = 0;
  std::uint64_t cpu_all_ticks_ = 0;
  std::unique_ptr<Probe> probe_;
  std::thread thread_;
};

}  // namespace rooflined::daemon
