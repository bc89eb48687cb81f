// Turns the stamps of packets into line time, which no clock set by hand can throw about.
//
//   in:   packet stamps (CaptureTime) and, on a live interface, the monotonic time before each read
//   out:  LineTime = stamp + offset
//
// A stamp that goes back by at most a second stays as it is: packets of several CPUs overtake each other. A larger step
// changes the offset, so that line time goes on from where it was, and is counted. Live, a step is a distance between
// two stamps that is more than a second off what the monotonic clock allows; in a file, a stamp more than a second
// before the latest one (a file cannot tell a step forward from silence).
//
// No clock in here. Threads: one.

#pragma once

#include "metrics/base/time.h"

#include <cstdint>
#include <optional>

namespace rooflined::tap {

class LineClock {
 public:
  static constexpr Duration kStepMin = std::chrono::seconds(1);
  // Longest ordinary way of a packet to us: 50 ms in the ring, 50 ms of waiting for it, and the same again for a busy
  // host.
  static constexpr Duration kDeliveryMax = std::chrono::milliseconds(200);

  // Live only: before each read. From the first call on, stamps are judged against this clock.
  void observe(MonotonicTime now);

  // The line time of a packet.
  LineTime stamp(CaptureTime captured_at);

  // The latest line time that a packet had. Nullopt before the first one.
  std::optional<LineTime> latest() const;

  // Live: whatever was captured up to this time has been delivered. Nullopt before the first packet.
  std::optional<LineTime> now(MonotonicTime now) const;

  std::uint64_t steps() const noexcept { return steps_; }

 private:
  // A packet that comes out of the read that began at `began` was captured after the read before it began.
  struct Read {
    MonotonicTime began_before;
    MonotonicTime began;
  };
  // `lead` is line time less the monotonic time of the read: its maximum belongs to the packet that came fastest. Kept
  // over the running and the previous span of this length, so that it follows a slow drift.
  static constexpr Duration kLeadSpan = std::chrono::seconds(10);

  bool is_step(LineTime at) const;
  void learn_lead(LineTime at);

  Duration offset_{0};
  std::optional<LineTime> latest_;
  std::uint64_t steps_ = 0;

  std::optional<Read> read_;
  Read latest_read_;  // the one that brought latest_
  MonotonicTime lead_span_began_;
  Duration lead_running_ = Duration::min();
  Duration lead_previous_ = Duration::min();
};

}  // namespace rooflined::tap
