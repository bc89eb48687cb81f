// One thread for each task that runs, as cpp-httplib's task queue and for clients that arrive at random: a fixed pool
// would be a limit on concurrent streams.
//
// Bounds: kTasksMax threads; enqueue() waits for one to end. Thread rule: enqueue() and shutdown() on one thread.

#pragma once

#include <httplib.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>

namespace rooflined::simulator {

class TaskThreads final : public httplib::TaskQueue {
 public:
  static constexpr std::size_t kTasksMax = 4096;
  // void in cpp-httplib 0.11, bool in later ones.
  using EnqueueResult = decltype(std::declval<httplib::TaskQueue&>().enqueue(std::function<void()>()));

  EnqueueResult enqueue(std::function<void()> task) override;
  // Waits until every task has ended.
  void shutdown() override;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;  // guarded by mutex_
};

}  // namespace rooflined::simulator
