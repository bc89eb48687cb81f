#include "collectors/tap/sse_parser.h"

#include "tests/support/catch.h"

#include <string>
#include <string_view>
#include <vector>

namespace rooflined::tap {
namespace {

struct Collector final : FrameSink {
  std::vector<std::string> frames;
  void on_frame(const Frame& frame) override { frames.push_back((frame.error ? "!" : "") + std::string(frame.text)); }
};

std::vector<std::string> frames_of(std::string_view text, std::size_t piece) {
  const HttpLimits limits;
  HttpCounters counters;
  Collector collector;
  FrameParser parser(limits, counters, collector);
  for (std::size_t i = 0; i < text.size(); i += piece) parser.feed(text.substr(i, piece));
  parser.finish();
  return collector.frames;
}

}  // namespace

TEST_CASE("frames of event streams and of lines") {
  struct Row {
    std::string_view text;
    std::vector<std::string> frames;
  };
  const std::vector<Row> rows = {
      {"data: a\n\ndata: b\n\n", {"a", "b"}},
      {"data:a\r\n\r\ndata:b\r\n\r\n", {"a", "b"}},
      {"data: a\r\rdata: b\r\r", {"a", "b"}},
      {"\xEF\xBB\xBF"
       "data: a\n\n",
       {"a"}},
      {"data: a\ndata: b\n\n", {"a\nb"}},
      {"data: a\n: comment\ndata:b\n\n", {"a\nb"}},
      {":\n\n: ping\n\nid: 1\nretry: 5\n\n", {}},
      {"data:\n\n", {}},
      {"data: \n\n", {}},
      {"data:  a  \n\n", {"a"}},
      {"event: error\ndata: a\n\ndata: b\n\n", {"!a", "b"}},
      {"event: message\ndata: a\n\n", {"a"}},
      {"error: a\n\n", {"!a"}},
      {"data: [DONE]", {"[DONE]"}},
      {"data: a\n", {"a"}},
      {"{\"a\":1}\n{\"b\":2}", {"{\"a\":1}", "{\"b\":2}"}},
      {"database: 1\n\nData: 2\n\n", {}},
      {"\n\n\n", {}},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    for (std::size_t piece = 1; piece <= row.text.size(); ++piece) CHECK(frames_of(row.text, piece) == row.frames);
  }
}

TEST_CASE("a gap costs the frame that it hits") {
  struct Row {
    std::string_view before;
    std::string_view after;
    std::vector<std::string> frames;
  };
  const std::vector<Row> rows = {
      {"data: a\n\ndata: b", "c\n\ndata: d\n\n", {"a", "d"}},
      {"data: a\n\n", "data: b\n\n", {"a", "b"}},
      {"data: a\n", "\ndata: b\n\n", {"a", "b"}},
      {"data: a\n\n", "\ndata: b\n\n", {"a", "b"}},
      {"data: a\n\nda", "ta: b\n\ndata: c\n\n", {"a", "c"}},
      {"{\"a\":1}\n{\"b\"", "2}\n{\"c\":3}\n", {"{\"a\":1}", "{\"c\":3}"}},
  };
  for (const Row& row : rows) {
    INFO(row.before << "…" << row.after);
    const HttpLimits limits;
    HttpCounters counters;
    Collector collector;
    FrameParser parser(limits, counters, collector);
    parser.feed(row.before);
    parser.gap();
    parser.feed(row.after);
    parser.finish();
    CHECK(collector.frames == row.frames);
  }
}

TEST_CASE("frames over the limit are skipped and counted, however they come") {
  HttpLimits limits;
  limits.frame_bytes_max = 100;
  const std::string big(200, 'x');
  const std::vector<std::string> texts = {
      "data: " + big + "\n\ndata: a\n\n",
      "data: " + big.substr(0, 90) + "\ndata: " + big.substr(0, 90) + "\n\ndata: a\n\n",
      "{\"" + big + "\"}\n{a}\n",
  };
  for (const std::string& text : texts) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{64}, text.size()}) {
      HttpCounters counters;
      Collector collector;
      FrameParser parser(limits, counters, collector);
      for (std::size_t i = 0; i < text.size(); i += piece) parser.feed(std::string_view(text).substr(i, piece));
      parser.finish();
      CHECK(collector.frames.size() == 1);
      CHECK(counters.of(ParseError::kFrameTooLong) == 1);
    }
  }
}

}  // namespace rooflined::tap
