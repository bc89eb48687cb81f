// The body of a response: takes the content coding off, and makes frames of a stream or keeps a whole answer together.
//
// Whether it is a stream is said by the media type; where that says nothing, by the first byte; and where a stream was
// asked for and JSON is said, by whether the first line is a whole object. Thread: one.

#pragma once

#include "collectors/tap/http_buffer.h"
#include "collectors/tap/http_counters.h"
#include "collectors/tap/http_head.h"
#include "collectors/tap/http_inflate.h"
#include "collectors/tap/sse_parser.h"

#include <memory>
#include <string_view>

namespace rooflined::tap {

class ResponseBody {
 public:
  // Requires: all references outlive the body. `stream_expected`: the request asked for a stream.
  ResponseBody(const HttpLimits& limits, HttpCounters& counters, FrameSink& sink)
      : limits_(limits), counters_(counters), frames_(limits, counters, sink), document_(counters.text) {}

  // `length_known`: its head tells how long it is, as no stream's does.
  void start(MediaType media_type, ContentCoding coding, bool stream_expected, bool length_known);
  void feed(std::string_view bytes);
  void gap();
  // No more will come: a frame that waits for its line end is handed out.
  void finish();
  // Drops everything that waits, and the room for it.
  void release();

  // Some or all of it could not be read (coding, size, gap): what it held is unknown.
  bool unreadable() const noexcept { return form_ == Form::kUnreadable; }
  bool is_document() const noexcept { return form_ == Form::kDocument; }
  std::string_view document() const noexcept { return document_.view(); }

 private:
  enum class Form : std::uint8_t { kUndecided, kStream, kDocument, kUnreadable };

  void take_text(std::string_view text);
  void take_document(std::string_view text);
  void give_up();

  Form form_ = Form::kStream;
  bool stream_expected_ = true;
  bool lines_possible_ = false;
  const HttpLimits& limits_;
  HttpCounters& counters_;
  FrameParser frames_;
  TextBuffer document_;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace rooflined::tap
