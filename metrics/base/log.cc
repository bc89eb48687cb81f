#include "metrics/base/log.h"

#include <atomic>
#include <cstdio>

namespace rooflined::log {
namespace {

void write_to_stderr(Level level, std::string_view line) {
  if (level < Level::kWarning) return;
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

std::atomic<Sink> current_sink{write_to_stderr};

}  // namespace

void set_sink(Sink sink) {
  current_sink.store(sink);
}

void write(Level level, std::string_view line) {
  current_sink.load()(level, line);
}

}  // namespace rooflined::log
