// From the bytes of a body to the frames of a stream: server-sent events and lines of JSON, told apart line by line.
//
//   in:   body bytes in order, in pieces of any size, and gaps
//   out:  frames, each when its last byte came: an event at its blank line, a line of JSON at its end
//
// Lines end in LF, CRLF or CR. `data:` with or without a space, several data lines in an event, comments, `event:` and
// `error:` fields, a byte-order mark, and a last frame without its line end are all seen in the field (wire-formats
// §1.5). After a gap it starts again at the next line that begins something.
//
// A frame inside one piece is handed on where it lies. One that is split waits here, up to frame_bytes_max; a longer
// one is skipped and counted. Thread: one.

#pragma once

#include "collectors/tap/http_buffer.h"
#include "collectors/tap/http_counters.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rooflined::tap {

struct Frame {
  std::string_view text;           // data of the event, or the line of JSON; valid during the call
  std::size_t readable_after = 0;  // bytes behind `text` that may be read, whatever they are
  bool error = false;              // came in a field `error:`, or in an event of that name
  bool cut = false;                // the body ended in the middle of its last line
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  virtual void on_frame(const Frame& frame) = 0;
};

class FrameParser {
 public:
  // Requires: `limits`, `counters` and `sink` outlive the parser.
  FrameParser(const HttpLimits& limits, HttpCounters& counters, FrameSink& sink)
      : line_(counters.text), data_(counters.text), limits_(limits), counters_(counters), sink_(sink) {}

  void feed(std::string_view bytes);
  void gap();
  // The body ended: what waits is a frame, if it is whole.
  void finish();
  // Drops what waits, and the room for it.
  void release();

 private:
  void take_line(std::string_view line, std::size_t readable_after);
  bool ends_event(std::string_view data) const;
  void take_data(std::string_view data, std::size_t readable_after, bool error);
  void emit(std::string_view text, std::size_t readable_after, bool error);
  void dispatch();
  void keep_pending();

  TextBuffer line_;  // the start of a line that was cut
  TextBuffer data_;  // data lines of the event so far, where they had to be kept
  // The one data line of the event so far, while it still lies in the piece that is being fed.
  std::string_view pending_;
  std::size_t pending_readable_ = 0;
  std::uint32_t data_lines_ = 0;
  bool error_event_ = false;  // `event: error`, or a line `error:`
  bool skip_line_ = false;    // the rest of a line that is too long, or of an event that is
  bool skip_event_ = false;
  bool after_gap_ = false;
  bool bare_lines_ = false;  // no blank line is between its events
  bool cut_ = false;         // what is handed out now ended with the body
  bool after_cr_ = false;    // the last line ended in CR: an LF right after it belongs to it
  bool started_ = false;     // a byte-order mark can only come before that
  const HttpLimits& limits_;
  HttpCounters& counters_;
  FrameSink& sink_;
};

}  // namespace rooflined::tap
