// The lower half of the tap: packets in, ordered bytes and gaps of watched connections out.
//
//   packet → link layer → line time → connection table → ConnectionHandler
//
// No clock: time comes with the packets and, live, with observe() and advance_to(). Live use, in this order and on one
// thread:
//
//   tap.observe(monotonic now); source.read(tap, at most 100 ms); tap.advance_live(monotonic now);
//
// For a file: read until kFinished, then finish(). Bounds: those of ConnectionTable. Threads: one.

#pragma once

#include "collectors/tap/connection.h"
#include "collectors/tap/connection_table.h"
#include "collectors/tap/line_clock.h"
#include "collectors/tap/link_layer.h"
#include "collectors/tap/local_host.h"
#include "collectors/tap/packet.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace rooflined::tap {

struct TapCounters {
  std::uint64_t packets = 0;  // as captured, of whatever kind
  std::uint64_t clock_steps = 0;
  // By DecodeOutcome; kTcp counts the segments.
  std::array<std::uint64_t, kDecodeOutcomes> decoded{};
  TableCounters table;
  StreamCounters streams;    // of both directions
  StreamCounters responses;  // of what servers sent
  std::uint64_t connections_opened = 0;
  std::uint64_t connections_joined_late = 0;
  std::uint64_t connections = 0;  // with a handler, now
};

class Tap final : public PacketSink {
 public:
  struct Options {
    std::vector<std::uint16_t> ports;
    TableLimits limits;
  };

  // `local` nullptr: every server counts (capture files). Requires: `factory` and `local` outlive the tap.
  Tap(const Options& options, ConnectionFactory& factory, LocalHost* local);

  void on_packet(const Packet& packet) override;

  // Live: before each read.
  void observe(MonotonicTime now) { clock_.observe(now); }
  // Live: after each read, so that timers run when no packet comes.
  void advance_live(MonotonicTime now);
  // Lets the timers run up to `now`; a time before that of an earlier call does nothing.
  void advance_to(LineTime now);
  // The capture is over: closes all connections.
  void finish();

  // What the timers of all later stages go by: never goes back. Nullopt before the first packet.
  std::optional<LineTime> now() const noexcept { return now_; }
  // The earliest and the latest stamp of all packets.
  std::optional<LineTime> first_time() const noexcept { return first_time_; }
  std::optional<LineTime> last_time() const { return clock_.latest(); }

  void set_watch(const Watch& watch);

  TapCounters counters() const;

 private:
  LineClock clock_;
  ConnectionTable table_;
  std::optional<LineTime> now_;
  std::optional<LineTime> first_time_;
  std::uint64_t packets_ = 0;
  std::array<std::uint64_t, kDecodeOutcomes> decoded_{};
};

}  // namespace rooflined::tap
