// One direction of an HTTP/1.x connection: from ordered bytes and gaps to heads and body bytes.
//
// Passive: it never asks for anything and takes whatever a wire can carry, in pieces of any size. Body bytes are handed
// on as they come, without copying; only heads and the starts of lines wait in here, within HttpLimits.
//
// Where the place in the stream is lost (joined late, a gap over a boundary, broken chunk framing) it hunts: lines are
// looked at for the start of a message or a chunk header, and everything else goes to on_stray(), because an event of a
// stream may well be readable there. Thread: one.

#pragma once

#include "collectors/tap/connection.h"
#include "collectors/tap/http_buffer.h"
#include "collectors/tap/http_counters.h"
#include "metrics/base/time.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rooflined::tap {

struct BodyFraming {
  enum class Kind : std::uint8_t {
    kNone,        // no body: the message ends with its head
    kInterim,     // 1xx: another head follows, the message goes on
    kLength,      // `length` bytes
    kChunked,     //
    kUntilClose,  // until the FIN of this direction
    kOpaque,      // no HTTP any more (upgrade, CONNECT)
    kNotAHead,    // the start line was none: hunt
  };
  Kind kind = Kind::kNone;
  std::uint64_t length = 0;
};

class HttpParserSink {
 public:
  virtual ~HttpParserSink() = default;

  // `head` holds the start line and the fields, and is wiped after the call.
  virtual BodyFraming on_head(Direction direction, std::string_view head, LineTime at) = 0;
  virtual void on_body(Direction direction, std::string_view bytes, LineTime at) = 0;
  // Bytes of the message (or between messages) are missing here; 0: nobody knows how many.
  virtual void on_missing(Direction direction, std::uint64_t bytes, LineTime at) = 0;
  // Bytes whose place in a message is unknown.
  virtual void on_stray(Direction direction, std::string_view bytes, LineTime at) = 0;
  // `complete` is false where the end was not seen: the stream ended, or its framing broke off.
  virtual void on_message_end(Direction direction, bool complete, LineTime at) = 0;
  // This is no HTTP/1.x, or no longer: nothing more will be parsed.
  virtual void on_foreign(Direction direction, ParseError why, LineTime at) = 0;
};

class HttpParser {
 public:
  // Requires: `sink`, `limits` and `counters` outlive the parser. `joined_late`: the first byte may be anywhere.
  HttpParser(Direction direction, bool joined_late, const HttpLimits& limits, HttpCounters& counters,
             HttpParserSink& sink);

  void feed(std::string_view bytes, LineTime at);
  void gap(std::uint64_t bytes_missing, LineTime at);
  // The FIN of this direction.
  void finish(LineTime at);
  void stop() noexcept;

  // The stray bytes turned out to be events: the hunt may go on for as long as they come.
  void confirm() noexcept {
    hunted_ = 0;
    unproven_ = false;
  }

  // The body that was announced may not come: the next message may stand in its place.
  void body_may_be_missing() noexcept { body_may_be_missing_ = true; }

  // Lost its place and has not found it again.
  bool hunting() const noexcept { return state_ == State::kHunting; }

 private:
  enum class State : std::uint8_t {
    kHead,
    kLength,
    kUntilClose,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailers,
    kHunting,
    kStopped,
  };

  // Each takes what it can of `bytes` and returns how much that was.
  std::size_t take_head(std::string_view bytes, LineTime at);
  std::size_t take_body(std::string_view bytes, LineTime at);
  std::size_t take_chunk_size(std::string_view bytes, LineTime at);
  std::size_t take_chunk_end(std::string_view bytes);
  std::size_t take_trailers(std::string_view bytes, LineTime at);
  std::size_t take_hunted(std::string_view bytes, LineTime at);
  std::size_t take_hunted_request(std::string_view bytes, LineTime at);

  bool foreign_start(LineTime at);
  bool is_start_line(std::string_view line) const;
  void head_complete(LineTime at);
  void message_end(bool complete, LineTime at);
  bool chunk_header(std::string_view line);
  void hunt_in_line(std::string_view line, LineTime at);
  void hunt(bool line_is_whole);
  void give_up_late(LineTime at);
  void judge_hunted_line(bool line_ended, LineTime at);

  Direction direction_;
  State state_;
  // Nothing sure was seen so far on this stream: what comes may be no HTTP at all.
  bool unproven_ = true;
  // Nothing of the body was seen, and it was refused.
  bool body_may_be_missing_ = false;
  // Hunting: the bytes in `line_` began right after a line end.
  bool line_is_whole_ = true;
  // Hunting: in the middle of a line that is nothing for us.
  bool line_passes_ = false;
  std::uint8_t line_used_ = 0;
  std::array<char, 48> line_{};
  // Heads: bytes of the current line so far. Chunk lines and trailers: bytes taken, against the limits.
  std::size_t line_bytes_ = 0;
  std::uint64_t left_ = 0;    // of the body or the chunk
  std::uint64_t hunted_ = 0;  // since the place was lost
  TextBuffer head_;           // also a chunk header that is cut, and the end of a line while hunting for requests
  const HttpLimits& limits_;
  HttpCounters& counters_;
  HttpParserSink& sink_;
  std::uint64_t hunted_bytes_max_;  // before the stream is given up
};

}  // namespace rooflined::tap
