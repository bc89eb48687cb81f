// One page of memory shared by a probe and whoever may end it: workers read it before every block that they read, and
// leave in it when they read last.
//
// Made by the parent, handed to the child as a file descriptor. Threads: any; request() may be called in a signal
// handler.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <atomic>
#include <cstdint>

namespace rooflined::ceiling {

class StopPage {
 public:
  static Result<StopPage> create();
  // Maps the page behind a descriptor that another process created. The descriptor stays the caller's.
  static Result<StopPage> attach(int fd);

  StopPage(StopPage&& other) noexcept;
  StopPage& operator=(StopPage&& other) noexcept;
  StopPage(const StopPage&) = delete;
  StopPage& operator=(const StopPage&) = delete;
  ~StopPage();

  void request() const noexcept { shared_->requested.store(1); }
  bool requested() const noexcept { return shared_->requested.load() != 0; }

  // A worker's brackets around everything that it reads or writes of the buffer. Once requested() is true and reading()
  // is 0, nothing is touched any more: a worker that begins later sees the request before its first block (both sides
  // are sequentially consistent: each writes its own word, then reads the other's).
  void begin_reading() const noexcept { shared_->reading.fetch_add(1); }
  void end_reading(MonotonicTime last_load) const noexcept;

  unsigned reading() const noexcept { return shared_->reading.load(); }
  // The latest that a worker left; 0 before the first.
  MonotonicTime last_load() const noexcept { return MonotonicTime::from_ns(shared_->last_load_ns.load()); }

  // -1 where attached.
  int fd() const noexcept { return fd_; }

 private:
  struct Shared {
    std::atomic<std::uint32_t> requested;
    std::atomic<std::uint32_t> reading;      // workers between their brackets
    std::atomic<std::int64_t> last_load_ns;  // CLOCK_MONOTONIC, which all processes share
  };
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
                "two processes share it");

  StopPage(Shared* shared, int fd) : shared_(shared), fd_(fd) {}
  static Result<StopPage> map(int fd, int fd_kept);

  Shared* shared_;
  int fd_;
};

}  // namespace rooflined::ceiling
