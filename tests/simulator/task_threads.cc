#include "tests/simulator/task_threads.h"

#include <system_error>
#include <thread>

namespace rooflined::simulator {

TaskThreads::EnqueueResult TaskThreads::enqueue(std::function<void()> task) {
  {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ < kTasksMax; });
    ++running_;
  }
  const auto run = [this, work = std::move(task)] {
    work();
    const std::lock_guard lock(mutex_);
    --running_;
    ended_.notify_all();
  };
  try {
    std::thread(run).detach();
  } catch (const std::system_error&) {
    run();  // no thread to be had: late is better than never
  }
  return EnqueueResult(1);
}

void TaskThreads::shutdown() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return running_ == 0; });
}

}  // namespace rooflined::simulator
