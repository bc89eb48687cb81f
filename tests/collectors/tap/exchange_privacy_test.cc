// Words of a prompt, an answer, a key, a cookie and a query go in; nothing of them may come out, in events, errors or
// log lines.

#include "collectors/tap/exchange_factory.h"
#include "metrics/base/log.h"
#include "tests/support/transcript.h"

#include "tests/support/catch.h"

#include <string>
#include <vector>

namespace rooflined::tap {
namespace {

std::string logged;
void keep_log(log::Level, std::string_view line) {
  logged += std::string(line) + "\n";
}

constexpr const char* kCanary = "zinnoberkanarie";

std::string chunk(const std::string& text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

Transcript with_canaries(const std::string& damage) {
  const std::string body = fmt::format(
      R"({{"model":"{0}","stream":true,"user":"{0}","messages":[{{"role":"user","content":"{0}"}}]}})", kCanary);
  Transcript transcript;
  TranscriptStep step;
  step.bytes = fmt::format(
      "POST /v1/chat/completions?key={0} HTTP/1.1\r\nAuthorization: Bearer {0}\r\nCookie: a={0}\r\nContent-Length: "
      "{1}\r\n\r\n{2}",
      kCanary, body.size(), body);
  transcript.steps.push_back(step);
  step.direction = Direction::kToClient;
  step.at = transcript_time(10);
  step.bytes = fmt::format(
      "HTTP/1.1 200 OK\r\nServer: {0}\r\nSet-Cookie: {0}\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
      "chunked\r\n\r\n",
      kCanary);
  step.bytes +=
      chunk(fmt::format("data: "
                        "{{\"id\":\"{0}\",\"model\":\"{0}\",\"system_fingerprint\":\"{0}\",\"choices\":[{{\"index\":0,"
                        "\"delta\":{{\"content\":\"{0}\"}}}}]}}\n\n",
                        kCanary));
  step.bytes += damage;
  step.bytes += chunk(fmt::format(
      "data: {{\"error\":{{\"message\":\"{0}\"}}}}\n\nerror: {0}\n\ndata: {0}\n\ndata: [DONE]\n\n", kCanary));
  transcript.steps.push_back(step);
  return transcript;
}

}  // namespace

TEST_CASE("no text comes out of the tap") {
  const std::vector<std::string> damages = {
      "",
      fmt::format("{}\r\n", kCanary),
      chunk(fmt::format("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\xff\"}}}}]}}\n\n", kCanary)),
      chunk(fmt::format("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\n\n", kCanary)),
      fmt::format("0\r\n\r\nHTTP/1.1 {}\r\n\r\n", kCanary),
  };
  log::set_sink(keep_log);
  for (const std::string& damage : damages) {
    ExchangeRecorder recorder;
    const HttpCounters counters = play_transcript(with_canaries(damage), recorder);
    CHECK(recorder.sum().requests == 1);
    std::string out = logged;
    for (const std::string& line : recorder.lines()) out += line + "\n";
    for (const std::string& line : error_lines(counters)) out += line + "\n";
    CHECK(out.find(kCanary) == std::string::npos);
  }
}

}  // namespace rooflined::tap
