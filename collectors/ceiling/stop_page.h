// One page of memory shared by a probe and whoever may end it: workers read it before every block that they read, and
// leave in it when they read last.
//
// Beside it, workers may heed a descriptor that is readable as long as a packet waits which nobody has judged yet. They
// hold still while it is: whoever judges needs a CPU first, and on a busy one the scheduler lets it wait for up to 4 ms
// (a tick of Linux 6.18 without preemption, seen in 6 of 200 requests). One that has lost its CPU in the middle of a
// block cannot look: whoever looks first interrupts it, so that it does not read on when it gets the CPU back.
//
// Made by the parent, handed to the child as a file descriptor. Threads: any; request() may be called in a signal
// handler.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace rooflined::ceiling {

// Makes a worker leave its block at once (WorkerPool::heed_interrupts()).
inline constexpr int kInterruptSignal = SIGUSR1;
// One that has a CPU does so within a few microseconds. One that has not by then waits for a CPU.
inline constexpr Duration kAnswerTime = std::chrono::microseconds(50);

class StopPage {
 public:
  // Workers that show on the page: one a CPU.
  static constexpr std::size_t kPlaces = 1000;

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

  // `fd` stays the caller's and must stay open; -1 is none. Not shared: for this process only.
  void heed(int fd) noexcept { heeded_ = fd; }
  bool heeds() const noexcept { return heeded_ >= 0; }
  // Whether loads may disturb a request that nobody has told of yet. A system call (0.3 us) where a descriptor is
  // heeded.
  bool knocked() const noexcept;

  // A worker's brackets around everything that it reads or writes of the buffer; `thread` is its number in the kernel.
  // Once requested() is true and no thread is between its brackets, nothing is touched any more: a worker that begins
  // later sees the request before its first block (both sides are sequentially consistent: each writes its own word,
  // then reads the other's). Requires: no two threads at once at the same place; places from kPlaces on do not show.
  void begin_reading(std::size_t place, pid_t thread) const noexcept;
  void end_reading(std::size_t place, MonotonicTime last_load) const noexcept;

  // Sends kInterruptSignal to every thread of `process` between its brackets, once. It loads nothing from then on: if
  // it has a CPU it leaves within kAnswerTime, if not, the signal is the first that it gets. kAgain: to those, too,
  // that another thread is about to interrupt, which may have lost its CPU before it came to that.
  enum class Whom { kOnce, kAgain };
  void interrupt_readers(pid_t process, Whom whom) const noexcept;
  // When somebody was interrupted last; 0 before the first.
  MonotonicTime interrupted_at() const noexcept { return MonotonicTime::from_ns(shared_->interrupted_at_ns.load()); }

  // Threads between their brackets.
  struct Readers {
    std::size_t reading = 0;
    std::size_t interrupted = 0;
  };
  Readers readers() const noexcept;
  bool someone_reads() const noexcept { return readers().reading + readers().interrupted > 0; }
  // The places where somebody is between the brackets, which are the numbers of the workers' CPUs.
  cpu_set_t reading_cpus() const noexcept;
  // The latest that a worker left; 0 before the first.
  MonotonicTime last_load() const noexcept { return MonotonicTime::from_ns(shared_->last_load_ns.load()); }

  // -1 where attached.
  int fd() const noexcept { return fd_; }

 private:
  struct Shared {
    std::atomic<std::uint32_t> requested;
    std::atomic<std::int64_t> last_load_ns;  // CLOCK_MONOTONIC, which all processes share
    std::atomic<std::int64_t> interrupted_at_ns;
    std::array<std::atomic<pid_t>, kPlaces> readers;  // 0: nobody; negative: was interrupted
  };
  static_assert(sizeof(Shared) <= 4096, "it is one page");
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
                "two processes share it");

  StopPage(Shared* shared, int fd) : shared_(shared), fd_(fd) {}
  static Result<StopPage> map(int fd, int fd_kept);
  static void raise_to(std::atomic<std::int64_t>& latest, MonotonicTime to) noexcept;

  Shared* shared_;
  int fd_;
  int heeded_ = -1;
};

}  // namespace rooflined::ceiling
