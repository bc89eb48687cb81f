// Whether nothing goes on here, so that a probe disturbs nobody and nobody the probe.
//
//   in:   looks: what the wire shows, what the host shows, whether there is room for a working set
//   out:  for each reason whether it blocks; idle when none does
//
// First the wire: no request in flight for a while. Then the host, over the last seconds: a server that merely holds
// its model in memory, threads asleep, is idle. Tasks are counted as they run and not by the load average, which stays
// up for minutes after our own probe. No clock, no I/O. Bounds: readings of the last seconds. Threads: one.

#pragma once

#include "collectors/ceiling/host_reading.h"
#include "metrics/base/time.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace rooflined::ceiling {

// Spans over which the host's use is averaged. The first has to be seen whole before a window is idle; the second tells
// a pause of a busy host from one that has become idle, as far as it was seen.
inline constexpr Duration kHostSpan = std::chrono::seconds(5);
inline constexpr Duration kHostSpanLong = std::chrono::seconds(15);
// Use by others of more CPUs than this is not idle: a fifth of a small machine; of a large one, what two threads that
// stream through memory take, which is a share of its bandwidth that a share of its CPUs would hide.
double cpus_busy_max(unsigned cpus);

struct WireReading {
  bool capture_up = false;
  std::uint64_t exchanges_in_flight = 0;
  std::optional<MonotonicTime> busy_at;  // when a request was last in flight
};

class IdleWindow {
 public:
  explicit IdleWindow(MonotonicTime began) : began_(began) {}

  struct Look {
    WireReading wire;
    HostReading host;
    bool room = true;  // for a working set, in free memory
  };
  // `quiet`: how long no request may have been in flight. Looks come at least every second; after a longer pause (a
  // probe, a suspend) the span begins anew.
  void look(MonotonicTime now, Duration quiet, const Look& look);
  // What a probe, or its result, said: until then this is no idle window.
  void contended_until(MonotonicTime until) { contended_until_ = until; }
  // The doorbell could not be opened, or went deaf: until then no probe is tried.
  void deaf_until(MonotonicTime until) { deaf_until_ = until; }
  // Readings of before do not count: a probe of ours ran.
  void restart(MonotonicTime now);

  bool idle() const;
  // "capture", "requests", "cpu", "load", "pressure", "memory", "contended": true while it blocks. Those that this
  // kernel does not show are missing.
  const std::map<std::string, bool>& reasons() const { return reasons_; }

 private:
  struct Reading {
    MonotonicTime at;
    HostReading host;
  };

  void look_at_host(MonotonicTime now, const HostReading& host);
  // By others, over the readings of the last `span`: CPUs kept busy, tasks that ran or waited for a disk.
  double cpus_busy(Duration span) const;
  double tasks(Duration span) const;

  MonotonicTime began_;
  MonotonicTime contended_until_ = MonotonicTime::min();
  MonotonicTime deaf_until_ = MonotonicTime::min();
  std::deque<Reading> readings_;
  std::map<std::string, bool> reasons_;
};

}  // namespace rooflined::ceiling
