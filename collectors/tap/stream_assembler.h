// Puts one direction of one TCP connection back in order.
//
//   in:   pieces as captured: late, repeated, overlapping, cut by snaplen, or missing; what the receiver acknowledged
//   out:  bytes in sequence order, a Gap wherever bytes never came, and the end of the stream
//
// There is no clock here. Time arrives with the pieces and through advance_to(), so a replayed capture gives the same
// output on any machine.
//
// Memory is bounded by Limits and by the budget that all streams share. Reaching a bound turns the oldest hole into a
// Gap and moves on: a gap costs one token interval, a stall costs the series. Bytes that come in order are never
// copied. Threads: one.

#pragma once

#include "collectors/tap/connection.h"
#include "metrics/base/time.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rooflined::tap {

// Receives the ordered stream. Calls come from within accept(), advance_to() and close().
class StreamSink {
 public:
  virtual ~StreamSink() = default;

  // `captured_at` is when these bytes crossed the wire, not when the hole in front of them was filled. Token intervals
  // are wrong otherwise. It may go back against the call before.
  virtual void on_bytes(std::span<const std::byte> bytes, LineTime captured_at) = 0;
  virtual void on_gap(const Gap& gap) = 0;
  // The FIN was reached in order. The last call.
  virtual void on_end(LineTime at) = 0;
};

// Bytes that wait for a hole to be filled, over all streams.
struct WaitingBudget {
  std::size_t bytes = 0;
  std::size_t bytes_max = 32 * 1024 * 1024;
};

struct StreamCounters {
  std::uint64_t bytes_delivered = 0;
  std::uint64_t bytes_repeated = 0;
  std::uint64_t bytes_missing = 0;
  std::uint64_t gaps = 0;
  std::uint64_t resyncs = 0;         // gaps across which the sequence numbers did not fit
  std::uint64_t pieces_ignored = 0;  // far outside what the receiver could take, or behind the FIN

  friend StreamCounters operator+(StreamCounters a, const StreamCounters& b) {
    a.bytes_delivered += b.bytes_delivered;
    a.bytes_repeated += b.bytes_repeated;
    a.bytes_missing += b.bytes_missing;
    a.gaps += b.gaps;
    a.resyncs += b.resyncs;
    a.pieces_ignored += b.pieces_ignored;
    return a;
  }
};

struct StreamPiece {
  std::uint32_t sequence = 0;          // of the first payload byte (behind a SYN: one more than in its header)
  std::span<const std::byte> payload;  // as captured
  std::uint32_t length = 0;            // on the wire, at least payload.size()
  bool fin = false;
  LineTime at;
};

class StreamAssembler {
 public:
  struct Limits {
    std::size_t waiting_bytes_max = 256 * 1024;
    std::size_t waiting_pieces_max = 256;
    // From the first sign of a hole on. The ledger waits 250 ms for what comes late (ledger.md).
    std::chrono::milliseconds hole_age_max{200};
    // The same, as long as the receiver has not acknowledged the hole either: a loss on the way, which the sender
    // repeats.
    std::chrono::milliseconds unacknowledged_hole_age_max{200};
  };

  // `budget` and `counters` may be shared with other streams. Requires: all references outlive the assembler.
  StreamAssembler(const Limits& limits, WaitingBudget& budget, StreamCounters& counters, StreamSink& sink)
      : limits_(limits), budget_(budget), counters_(counters), sink_(sink) {}
  ~StreamAssembler() { drop_waiting(); }
  StreamAssembler(const StreamAssembler&) = delete;
  StreamAssembler& operator=(const StreamAssembler&) = delete;

  // Says where the stream begins, where that is known; otherwise the first piece says it.
  void start_at(std::uint32_t sequence);
  bool started() const noexcept { return started_; }
  // The sequence number of the next byte in order. Requires: started().
  std::uint32_t sequence_next() const noexcept { return first_sequence_ + static_cast<std::uint32_t>(next_); }

  // Takes any piece the wire can produce. The payload is copied only if it has to wait for a hole.
  void accept(const StreamPiece& piece);

  // The receiver has everything before `sequence`.
  void acknowledge(std::uint32_t sequence, LineTime at);

  // Gives up on holes that are too old by `now`.
  void advance_to(LineTime now);
  // When advance_to() has something to do, as far as is known now; nullopt without a hole.
  std::optional<LineTime> deadline() const {
    if (!hole_since_) return std::nullopt;
    // What the receiver has, and we have not, is lost to us.
    return *hole_since_ + (acknowledged_ > next_ ? limits_.hole_age_max : limits_.unacknowledged_hole_age_max);
  }

  // Delivers what waits, gaps included. accept() does nothing afterwards.
  void close(LineTime now);
  bool ended() const noexcept { return ended_; }

 private:
  struct Waiting {
    std::uint64_t offset;
    std::uint64_t length;  // on the wire
    std::vector<std::byte> bytes;
    LineTime at;
  };

  std::uint64_t offset_of(std::uint32_t sequence) const;
  bool fits(const StreamPiece& piece);
  void resync(const StreamPiece& piece);
  void deliver(std::uint64_t offset, std::uint64_t length, std::span<const std::byte> bytes, LineTime at);
  void deliver_ready();
  LineTime hole_shown_at() const;
  void keep(std::uint64_t offset, const StreamPiece& piece);
  bool has_hole() const;
  void give_up_hole(GapCause cause, LineTime at);
  void declare_gap(std::uint64_t bytes_missing, GapCause cause, LineTime at);
  void end_if_complete();
  void drop_waiting();

  const Limits& limits_;
  WaitingBudget& budget_;
  StreamCounters& counters_;
  StreamSink& sink_;

  // Offsets count from the first sequence number, widened to 64 bits so that wrap-around is handled once, on entry, and
  // ordering below is plain `<`.
  std::uint32_t first_sequence_ = 0;
  bool started_ = false;
  bool ended_ = false;
  std::uint64_t next_ = 0;
  std::uint64_t acknowledged_ = 0;       // the most that the receiver has acknowledged
  LineTime acknowledged_at_;             // when it did
  std::uint64_t acknowledged_last_ = 0;  // by its latest word, which may be less
  std::optional<std::uint64_t> fin_offset_;
  LineTime fin_at_;
  std::optional<LineTime> hole_since_;
  std::vector<Waiting> waiting_;  // by offset; may overlap
  std::size_t waiting_bytes_ = 0;

  // Pieces that do not fit: where the last one ended, and how many in a row went on from there.
  std::uint32_t stray_sequence_ = 0;
  std::uint32_t strays_ = 0;
};

}  // namespace rooflined::tap
