// The body of a response: codings, event streams, lines, gaps. However it is cut, the frames are the same.
//
// Input: first byte: bits 0 and 1 the coding, bit 2 whether a gap comes in the middle,
// bit 3 whether its length is known; then the body.

#include "collectors/tap/exchange_body.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace rooflined::tap;

struct Collector final : FrameSink {
  std::string frames;
  void on_frame(const Frame& frame) override {
    frames += frame.error ? '!' : '.';
    frames += frame.text;
    frames += '\n';
  }
};

std::string frames_of(std::string_view body, ContentCoding coding, bool gap, bool length_known, std::size_t piece) {
  HttpLimits limits;
  limits.frame_bytes_max = 512;
  limits.document_bytes_max = 4096;
  HttpCounters counters;
  Collector collector;
  ResponseBody response(limits, counters, collector);
  response.start(MediaType::kEventStream, coding, true, length_known);
  const std::size_t half = body.size() / 2;
  for (std::size_t from = 0; from < body.size();) {
    if (gap && from == half) response.gap();
    std::size_t length = piece < body.size() - from ? piece : body.size() - from;
    if (from < half && from + length > half) length = half - from;
    response.feed(body.substr(from, length));
    from += length;
  }
  response.finish();
  return collector.frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto coding = static_cast<ContentCoding>(data[0] & 3);
  const bool gap = (data[0] & 4) != 0;
  const bool length_known = (data[0] & 8) != 0;
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string whole = frames_of(body, coding, gap, length_known, body.size());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}}) {
    if (frames_of(body, coding, gap, length_known, piece) != whole) std::abort();
  }
  return 0;
}
