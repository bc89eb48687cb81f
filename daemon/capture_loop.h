// The capture thread: reads packets, carries them through the line, publishes a snapshot about once a second.
//
//   in:   an open packet source, answers about targets, the ceiling
//   out:  the newest Snapshot (any thread may read it), Activity, questions about new targets
//
// Nothing here waits for a scrape, a probe or an answer. A source that fails is opened again, at first after a second.

#pragma once

#include "collectors/tap/packet_source.h"
#include "daemon/activity.h"
#include "daemon/ceiling_keeper.h"
#include "daemon/deploy_desk.h"
#include "daemon/governor.h"
#include "daemon/identifier.h"
#include "daemon/wiring.h"
#include "metrics/live_history.h"
#include "metrics/snapshot.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace rooflined::daemon {

class CaptureLoop {
 public:
  // Requires: everything referred to outlives the loop.
  // `cpu_max`: of one core, for this thread.
  CaptureLoop(const tap::LiveOptions& capture, std::unique_ptr<tap::LiveCapture> source, LineOptions line,
              double cpu_max, Activity& activity, CeilingKeeper& ceiling, Identifier& identifier, DeployDesk& desk);
  ~CaptureLoop();
  CaptureLoop(const CaptureLoop&) = delete;
  CaptureLoop& operator=(const CaptureLoop&) = delete;

  void start();
  void stop();

  // Null until the first one.
  std::shared_ptr<const Snapshot> snapshot() const;
  // Counts up with every round of the loop: a watchdog's sign of life.
  std::uint64_t rounds() const { return rounds_.load(); }
  // Settings that hold from the next round on.
  void set_settings(std::vector<TargetSettings> targets, double cpu_max);

 private:
  void run();
  void read_packets(MonotonicTime now);
  void lose_source(const Error& error, MonotonicTime now);
  void reopen(MonotonicTime now);
  void apply_watch();
  void take_news();
  void tell_activity(MonotonicTime now);
  void judge_machine();
  void publish();
  // A log line when a target's MBU rises above 1.
  void tell_exceeded(const std::vector<TargetSnapshot>& targets);

  tap::LiveOptions capture_;
  std::unique_ptr<tap::LiveCapture> source_;  // null while the capture is down
  Activity& activity_;
  CeilingKeeper& ceiling_;
  Identifier& identifier_;
  DeployDesk& desk_;
  Line line_;
  tap::CaptureStats stats_;           // of the open source
  std::uint64_t dropped_before_ = 0;  // by sources that failed
  MonotonicTime reopen_at_;
  Duration reopen_pause_{0};
  Governor governor_;
  std::uint64_t watch_applied_ = 0;
  std::set<std::string> exceeded_;
  LiveHistory history_;
  double round_seconds_ = 0;  // of the last round, its wait for packets included

  std::mutex settings_mutex_;
  struct NewSettings {
    std::vector<TargetSettings> targets;
    double cpu_max;
  };
  std::optional<NewSettings> settings_;
  // shared_ptr: a scrape may still read a snapshot that newer ones have replaced.
  std::atomic<std::shared_ptr<const Snapshot>> snapshot_;
  std::atomic<std::uint64_t> rounds_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rooflined::daemon
