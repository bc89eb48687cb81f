// One page of memory shared by a probe and whoever may end it: workers read it before every block that they read.
//
// Made by the parent, handed to the child as a file descriptor. Threads: any; request() may be called in a signal
// handler.

#pragma once

#include "metrics/base/result.h"

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

  void request() const noexcept { flag_->store(1, std::memory_order_release); }
  bool requested() const noexcept { return flag_->load(std::memory_order_relaxed) != 0; }
  // -1 where attached.
  int fd() const noexcept { return fd_; }

 private:
  using Flag = std::atomic<std::uint32_t>;
  static_assert(Flag::is_always_lock_free, "two processes share it");

  StopPage(Flag* flag, int fd) : flag_(flag), fd_(fd) {}
  static Result<StopPage> map(int fd, int fd_kept);

  Flag* flag_;
  int fd_;
};

}  // namespace rooflined::ceiling
