// The trace of `rooflined run --trace FILE`: what the ledger settled, a JSON object a line, and no text of anybody.
//
//   {"rooflined_trace":1}
//   {"engine":"8080","at":…,"first_tokens":1}
//   {"engine":"8080","at":…,"waited":0.8}                                       a request's time to first token
//   {"engine":"8080","a":…,"b":…,"tokens":1,"passes":0.5,"batch":2,"context":311,"dense":…,"experts":…,"kv":…,
//    "busy":…,"overlap":…,"source":"exact_live","frames":1}                      a settled interval
//   the same with "correction":true: differences that a late total brought, spread over (a, b]
//
// Times are seconds of line time. Written on the capture thread; a full disk ends the trace, not the daemon.

#pragma once

#include "metrics/base/result.h"
#include "metrics/engine_books.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace rooflined::daemon {

class TraceWriter {
 public:
  static Result<std::unique_ptr<TraceWriter>> open(const std::string& path);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // The observer for the engine behind this endpoint; lives as long as the writer.
  RecordObserver* observer(const Endpoint& endpoint);

 private:
  class Engine;
  TraceWriter(std::FILE* file, std::string path);
  void write_line(const std::string& line);

  std::FILE* file_;
  std::string path_;
  bool failed_ = false;
  std::map<Endpoint, std::unique_ptr<Engine>> engines_;
};

// One line of a trace: what `engine` was told. Lines that are none go to neither.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual RecordObserver& engine(std::string_view name) = 0;
};

struct TraceReading {
  std::uint64_t lines = 0;
  std::uint64_t bad_lines = 0;
};

// True where the file opens as a trace does.
bool is_trace(const std::string& path);
Result<TraceReading> read_trace(const std::string& path, TraceSink& sink);

}  // namespace rooflined::daemon
