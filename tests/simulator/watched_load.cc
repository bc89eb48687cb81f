#include "tests/simulator/watched_load.h"

#include <fmt/format.h>

#include <pthread.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <future>

namespace rooflined::simulator {
namespace {

class ProgressLine {
 public:
  explicit ProgressLine(const std::string& title) : title_(title) {}
  void show(const LoadProgress& progress, double seconds) {
    if (!terminal_) return;
    fmt::print(stderr, "\r{}{:6.0f} s  {} in flight  {} completed  {} failed  {} tokens/s\033[K", title_, seconds,
               progress.in_flight, progress.completed, progress.failures, progress.output_tokens - tokens_before_);
    tokens_before_ = progress.output_tokens;
  }
  ~ProgressLine() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  std::string title_;
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::uint64_t tokens_before_ = 0;
};

}  // namespace

WatchedLoad run_watched(const LoadOptions& options, bool cut, const std::string& title) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // inherited by every thread: sigtimedwait() below takes them

  Load load(options);
  auto running = std::async(std::launch::async, [&load] { return load.run(); });
  ProgressLine progress(title);
  WatchedLoad watched;
  constexpr long kTickNs = 100'000'000;
  constexpr int kTicksPerLine = 10;
  const double duration = std::chrono::duration<double>(options.duration).count();
  for (int tick = 1; running.wait_for(std::chrono::seconds(0)) != std::future_status::ready; ++tick) {
    const timespec pause{0, kTickNs};
    if (sigtimedwait(&signals, nullptr, &pause) > 0) watched.interrupted = true;
    const double seconds = static_cast<double>(tick) * kTickNs * 1e-9;
    if (watched.interrupted || (cut && seconds >= duration)) load.stop();
    if (tick % kTicksPerLine == 0) progress.show(load.progress(), seconds);
  }
  watched.result = running.get();
  return watched;
}

}  // namespace rooflined::simulator
