// A probe in a process of its own: its gigabytes never weigh on the daemon, and it can be ended at any instant.
//
//   child:   the given program, with the stop page at descriptor kStopDescriptor and a pipe for its report at
//            kReportDescriptor; where the command has a doorbell, its socket at kDoorbellDescriptor; no other
//            descriptor of the parent but stderr; stdin and stdout are /dev/null
//   report:  lines of text, whatever the program writes; this class does not read them
//
// The child is killed when the thread that started it ends (PR_SET_PDEATHSIG), so a daemon killed by SIGKILL leaves no
// probe behind. SIGINT is ignored in the child: on a terminal it reaches both, and the parent is the one who decides.
//
// Bounds: a line of 1 MiB, the deadline of wait(). Threads: start(), wait() and the destructor on one thread that lives
// as long as the probe; stop() on any thread or in a signal handler, silence() and kill() on any thread.

#pragma once

#include "collectors/ceiling/stop_page.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::ceiling {

inline constexpr int kStopDescriptor = 3;
inline constexpr int kReportDescriptor = 4;
inline constexpr int kDoorbellDescriptor = 5;

class ProbeProcess {
 public:
  enum class Priority {
    kNormal,
    kIdle,  // SCHED_IDLE and nice 19: everything else on the CPU comes first
  };
  struct Command {
    std::string executable;
    std::vector<std::string> arguments;  // behind the program's name
    Priority priority = Priority::kNormal;
    int doorbell = -1;  // for StopPage::heed(); stays the caller's
  };
  enum class End {
    kExited,    // by itself, with whatever status
    kSignaled,  // crashed, or killed by somebody else (out of memory, say)
    kStopped,   // after stop()
    kTimeout,   // killed at the deadline
  };

  static Result<std::unique_ptr<ProbeProcess>> start(const Command& command);
  // Kills and reaps the child if it is still there.
  ~ProbeProcess();

  // Sets the stop page: a worker that has a CPU ends within a block. wait() does the rest at its next round.
  void stop() const noexcept { page_.request(); }
  // stop(), and an interrupt to every worker in its block. Returns the time of the last load: what the workers left, or
  // the moment from which on none can load any more. (A page that the kernel clears for one is cleared to its end.)
  MonotonicTime silence();
  // Where workers read or fill now.
  cpu_set_t reading_cpus() const noexcept { return page_.reading_cpus(); }
  // stop() by SIGKILL, and takes its memory: for when others need it now.
  void kill();

  // Hands every line of the report to `on_line` until the child ends; reaps it. Calls `on_round` at least every 20 ms.
  // A stopped child gets half a second to give its memory back without anybody's noticing, then it is killed. Once
  // only.
  End wait(Duration limit, const std::function<void(std::string_view)>& on_line,
           const std::function<void()>& on_round = {});

  // Requires: wait() has not returned, and the caller is its thread.
  pid_t pid() const noexcept { return pid_; }

 private:
  ProbeProcess(StopPage page, pid_t pid, int report) : page_(std::move(page)), pid_(pid), report_(report) {}
  bool reap_if_ended(int& status);
  void kill_and_reap();

  StopPage page_;
  std::mutex pid_mutex_;  // a number that was reaped may be another process's
  pid_t pid_;             // -1 once reaped
  int report_;            // the pipe's reading end
};

}  // namespace rooflined::ceiling
