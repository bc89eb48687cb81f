#include "collectors/tap/stream_assembler.h"

#include <algorithm>
#include <utility>

namespace rooflined::tap {

namespace {

// Where offsets begin, so that a piece from before the first one still has a positive offset. Its low 32 bits are 0.
constexpr std::uint64_t kOffsetFirst = std::uint64_t{1} << 32;

// What can be on its way: above the largest receive buffer that Linux gives by default (tcp_rmem[2], 6 MiB).
constexpr std::int32_t kReachMax = 16 * 1024 * 1024;
// So many pieces in a row that fit each other, and not the stream, are the stream: the capture lost a great deal, or
// the beginning of a new connection.
constexpr std::uint32_t kStraysOutsideMax = 4;
// The same for pieces that seem to repeat what was delivered and that the receiver has not acknowledged. A sender that
// lost its acknowledgments repeats a whole congestion window.
constexpr std::uint32_t kStraysBehindMax = 256;
// Between two pieces of a stray run: the largest segment that offloading makes, twice.
constexpr std::uint32_t kStrayStepMax = 128 * 1024;
// A larger distance is no count of bytes, but two sequence numbers that have nothing to do with each other.
constexpr std::uint64_t kMissingMax = std::uint64_t{1} << 30;

}  // namespace

void StreamAssembler::start_at(std::uint32_t sequence) {
  started_ = true;
  first_sequence_ = sequence;
  next_ = kOffsetFirst;
  acknowledged_ = kOffsetFirst;
}

std::uint64_t StreamAssembler::offset_of(std::uint32_t sequence) const {
  const auto distance = static_cast<std::int32_t>(sequence - sequence_next());
  return next_ + static_cast<std::uint64_t>(std::int64_t{distance});
}

void StreamAssembler::accept(const StreamPiece& piece) {
  if (ended_ || (piece.length == 0 && !piece.fin)) return;
  if (!started_) start_at(piece.sequence);
  if (!fits(piece)) return;

  const std::uint64_t offset = offset_of(piece.sequence);
  const std::uint64_t end = offset + piece.length;
  if (fin_offset_ && end > *fin_offset_) {
    ++counters_.pieces_ignored;
    return;
  }
  if (piece.fin && !fin_offset_ && end >= next_) {
    fin_offset_ = end;
    fin_at_ = piece.at;
  }
  if (end <= next_) {
    counters_.bytes_repeated += piece.length;
    end_if_complete();
  } else if (offset <= next_) {
    deliver(offset, piece.length, piece.payload, piece.at);
    if (hole_since_ || fin_offset_) deliver_ready();
  } else {
    keep(offset, piece);
  }
  if (!hole_since_ && !ended_ && has_hole()) hole_since_ = piece.at;
}

// False where the piece is none of this stream, or not yet known to be.
bool StreamAssembler::fits(const StreamPiece& piece) {
  const auto distance = static_cast<std::int32_t>(piece.sequence - sequence_next());
  const bool inside = distance >= -kReachMax && distance <= kReachMax;
  const bool behind = inside && std::int64_t{distance} + piece.length <= 0;
  if (inside && !behind) {
    strays_ = 0;
    return true;
  }
  if (piece.length == 0) return inside;
  if (behind && offset_of(piece.sequence) + piece.length <= acknowledged_last_) return true;

  const std::uint32_t step = piece.sequence - stray_sequence_;
  const bool goes_on = strays_ > 0 && (behind ? step == 0 : step <= kStrayStepMax);
  strays_ = goes_on ? strays_ + 1 : 1;
  stray_sequence_ = piece.sequence + piece.length;
  if (strays_ >= (behind ? kStraysBehindMax : kStraysOutsideMax)) {
    resync(piece);
    return true;
  }
  if (!behind) ++counters_.pieces_ignored;
  return behind;
}

// The stream goes on at `piece`, wherever that is.
void StreamAssembler::resync(const StreamPiece& piece) {
  strays_ = 0;
  fin_offset_.reset();
  acknowledged_ = next_;
  while (has_hole()) give_up_hole(GapCause::kHoleTooOld, piece.at);
  const std::uint32_t distance = piece.sequence - sequence_next();
  ++counters_.resyncs;
  if (distance > 0) declare_gap(distance, GapCause::kHoleTooOld, piece.at);
  next_ += distance;
  acknowledged_ = next_;
  hole_since_.reset();
}

void StreamAssembler::acknowledge(std::uint32_t sequence, LineTime at) {
  if (!started_ || ended_) return;
  const auto distance = static_cast<std::int32_t>(sequence - sequence_next());
  if (distance < -kReachMax || distance > kReachMax) return;
  acknowledged_last_ = offset_of(sequence);
  if (acknowledged_last_ > acknowledged_) {
    acknowledged_ = acknowledged_last_;
    acknowledged_at_ = at;
  }
  if (!hole_since_ && has_hole()) hole_since_ = at;
}

// Requires: `offset` <= next_ < `offset` + `length`.
void StreamAssembler::deliver(std::uint64_t offset, std::uint64_t length, std::span<const std::byte> bytes,
                              LineTime at) {
  const std::uint64_t repeated = next_ - offset;
  const auto fresh = bytes.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(repeated, bytes.size())));
  const std::uint64_t cut = length - repeated - fresh.size();
  next_ = offset + length;
  counters_.bytes_repeated += repeated;
  counters_.bytes_delivered += fresh.size();
  if (!fresh.empty()) sink_.on_bytes(fresh, at);
  if (cut > 0) declare_gap(cut, GapCause::kTruncated, at);
}

// Delivers what waits and is now in order, and looks again whether there is a hole.
void StreamAssembler::deliver_ready() {
  std::size_t done = 0;
  for (; done < waiting_.size() && waiting_[done].offset <= next_; ++done) {
    const Waiting& piece = waiting_[done];
    // It may have come before the FIN that it reaches over: next_ never does.
    const std::uint64_t length = fin_offset_ ? std::min(piece.length, *fin_offset_ - piece.offset) : piece.length;
    if (length < piece.length) ++counters_.pieces_ignored;
    if (piece.offset + length <= next_) {
      counters_.bytes_repeated += length;
    } else {
      const std::span<const std::byte> bytes(piece.bytes);
      deliver(piece.offset, length, bytes.first(std::min<std::size_t>(bytes.size(), length)), piece.at);
    }
    waiting_bytes_ -= piece.bytes.size();
    budget_.bytes -= piece.bytes.size();
  }
  if (done == waiting_.size()) {
    std::vector<Waiting>().swap(waiting_);  // holes are rare: a stream keeps no memory for them
  } else {
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
  }
  hole_since_.reset();
  if (has_hole()) hole_since_ = hole_shown_at();
  end_if_complete();
}

// When the hole at next_ was first to be seen. It may be younger than the deadline of the hole in front of it, at which
// nobody looked. Requires: has_hole().
LineTime StreamAssembler::hole_shown_at() const {
  LineTime at = LineTime::max();
  if (!waiting_.empty()) at = waiting_.front().at;
  if (fin_offset_ && *fin_offset_ > next_) at = std::min(at, fin_at_);
  if (acknowledged_ > next_) at = std::min(at, acknowledged_at_);
  return at;
}

// Copies a piece that lies behind a hole. Requires: `offset` > next_.
void StreamAssembler::keep(std::uint64_t offset, const StreamPiece& piece) {
  const std::size_t size = piece.payload.size();
  const auto full = [&] {
    return waiting_.size() >= limits_.waiting_pieces_max || waiting_bytes_ + size > limits_.waiting_bytes_max ||
           budget_.bytes + size > budget_.bytes_max;
  };
  while (offset > next_ && full()) {
    if (waiting_.empty() || offset < waiting_.front().offset) {
      declare_gap(offset - next_, GapCause::kBufferFull, piece.at);
      next_ = offset;
    } else {
      give_up_hole(GapCause::kBufferFull, piece.at);
      if (ended_) return;
    }
  }
  if (offset <= next_) {
    if (offset + piece.length <= next_) {
      counters_.bytes_repeated += piece.length;
    } else {
      deliver(offset, piece.length, piece.payload, piece.at);
    }
    deliver_ready();
    return;
  }
  const auto place = std::upper_bound(waiting_.begin(), waiting_.end(), offset,
                                      [](std::uint64_t value, const Waiting& other) { return value < other.offset; });
  if (place != waiting_.begin()) {
    const Waiting& before = *std::prev(place);
    if (before.offset + before.length >= offset + piece.length) {
      counters_.bytes_repeated += piece.length;
      return;
    }
  }
  waiting_.insert(place, Waiting{offset, piece.length, {piece.payload.begin(), piece.payload.end()}, piece.at});
  waiting_bytes_ += size;
  budget_.bytes += size;
}

bool StreamAssembler::has_hole() const {
  return !waiting_.empty() || (fin_offset_ ? *fin_offset_ > next_ : acknowledged_ > next_);
}

// Turns the hole at next_ into a gap. Requires: has_hole().
void StreamAssembler::give_up_hole(GapCause cause, LineTime at) {
  std::uint64_t hole_end = waiting_.empty() ? acknowledged_ : waiting_.front().offset;
  if (fin_offset_) hole_end = waiting_.empty() ? *fin_offset_ : std::min(hole_end, *fin_offset_);
  declare_gap(hole_end - next_, cause, at);
  next_ = hole_end;
  deliver_ready();
}

void StreamAssembler::declare_gap(std::uint64_t bytes_missing, GapCause cause, LineTime at) {
  ++counters_.gaps;
  if (bytes_missing <= kMissingMax) counters_.bytes_missing += bytes_missing;
  sink_.on_gap(Gap{bytes_missing, cause, at});
}

void StreamAssembler::advance_to(LineTime now) {
  while (const auto due = deadline()) {
    if (*due > now) return;
    give_up_hole(GapCause::kHoleTooOld, *due);
  }
}

void StreamAssembler::close(LineTime now) {
  while (!ended_ && has_hole()) give_up_hole(GapCause::kStreamClosed, now);
  ended_ = true;
}

void StreamAssembler::end_if_complete() {
  if (ended_ || !fin_offset_ || *fin_offset_ != next_) return;
  ended_ = true;
  hole_since_.reset();
  drop_waiting();
  sink_.on_end(fin_at_);
}

void StreamAssembler::drop_waiting() {
  budget_.bytes -= waiting_bytes_;
  waiting_bytes_ = 0;
  waiting_.clear();
}

}  // namespace rooflined::tap
