// Keeps the ceiling: measures it in a child process when nothing else goes on, remembers it, and says how far it can be
// trusted.
//
//   in:   what the capture thread says of requests (Activity) and targets, the settings, the state file, /proc
//   out:  the adopted bandwidth, and the ceiling's part of a snapshot
//
// One thread of its own looks twice a second, asks a MeasurementPlan, and runs the probe; interrupt() ends a running
// probe from any other. When to measure and what to believe is decided in collectors/ceiling, without a clock.

#pragma once

#include "collectors/ceiling/measurement_plan.h"
#include "collectors/ceiling/observed_rate.h"
#include "daemon/activity.h"
#include "daemon/ceiling_state.h"
#include "daemon/probe.h"
#include "daemon/state_file.h"
#include "metrics/fixed_histogram.h"
#include "metrics/snapshot.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

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
  // The memory nodes one by one, where they were measured.
  std::vector<ceiling::NodeResult> nodes() const;
  bool stale(WallTime now) const;
  // A target reads less than before: whether the memory does is measured in the next idle window.
  void doubt_memory();
  // Every result that is kept, suspect ones too, oldest first.
  std::vector<ceiling::ConfirmedResult> readings() const;
  // What the RAM-bound targets read together over the last ten seconds. Capture thread, about once a second.
  void see_decode_rate(BytesPerSecond rate);
  // Marks what the ceiling says of each RAM-bound target (caveats, ceiling_exceeded), and learns from them which sizes
  // the caches may serve. Capture thread.
  void judge(WallTime now, std::vector<TargetSnapshot>& targets);
  // Fills what the snapshot says of the ceiling and of idleness.
  void describe(WallTime now, Snapshot& snapshot) const;

 private:
  // What the keeper's thread looks at with; copied, since settings may come meanwhile.
  struct Surroundings {
    Options options;
    ceiling::MachineIdentity identity;
  };

  void run();
  Surroundings surroundings() const;
  bool wanted() const;
  ceiling::IdleWindow::Look look_around(const Surroundings& surroundings);
  void notice_file(const Surroundings& surroundings);
  void follow_machine(const Surroundings& surroundings);
  void take_state(CeilingState state);
  ceiling::Options probe_options(const ceiling::MeasurementPlan::Order& order) const;
  void measure(const ceiling::MeasurementPlan::Order& order);
  Result<ceiling::Measurement> probe(const ceiling::Options& options);
  ceiling::Outcome remember(const ceiling::MeasurementPlan::Order& order, const ceiling::Measurement& measurement);
  void remember_observed();
  std::optional<Bytes> cache_size_wanted(WallTime now) const;
  const char* source() const;
  std::optional<BytesPerSecond> bandwidth_in_use() const;
  void describe_measured(WallTime now, CeilingSnapshot& ceiling) const;

  const Activity& activity_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  Options options_;
  CeilingState state_;
  // Results that no file holds yet: the disk was full, say.
  std::vector<ceiling::ConfirmedResult> unsaved_;
  ceiling::MeasurementPlan plan_;
  ceiling::ObservedRate observed_;
  std::optional<CollectorSnapshot> last_run_;
  std::array<std::uint64_t, 4> outcomes_{};  // by ceiling::Outcome
  FixedHistogram abort_latency_{kAbortLatencyBounds};
  std::vector<Bytes> cache_sizes_;  // that targets read per pass
  std::unique_ptr<Probe> probe_;

  // The keeper's thread only.
  FileStamp file_seen_;
  unsigned looks_ = 0;
  bool room_ = false;
  MonotonicTime observed_saved_;

  std::thread thread_;
};

}  // namespace rooflined::daemon
