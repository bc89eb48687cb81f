#include "collectors/ceiling/probe_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

namespace rooflined::ceiling {
namespace {

constexpr std::size_t kLineBytesMax = 1024 * 1024;
// What a child that was stopped or has closed its report gets to end by itself: 0.1 s go into gigabytes of small pages,
// more where it has to wait for a CPU.
constexpr Duration kExitGrace = std::chrono::milliseconds(500);
constexpr int kPollMilliseconds = 20;
constexpr int kExecFailed = 127;

MonotonicTime now() {
  return MonotonicTime(std::chrono::steady_clock::now().time_since_epoch());
}

// The other half of start(), between fork and exec: only calls that are safe there (signal-safety(7)), since another
// thread of the parent may have held any lock.
[[noreturn]] void become_probe(const ProbeProcess::Command& command, char* const* arguments, int stop_fd, int report_fd,
                               pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExecFailed);  // the parent died before the line above
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  // In the parent's session: idle priority ranks a task only within its scheduling group, which is the session where no
  // cgroup is in use (sched(7), autogroup). Within the doorbell's group it gives way at once; from a group of its own,
  // even one of nice 19, the doorbell was late by 2 to 4 ms in 2 of 40 requests on a quiet machine (Linux 6.18).
  if (command.priority == ProbeProcess::Priority::kIdle) {
    sched_param parameter{};
    ::sched_setscheduler(0, SCHED_IDLE, &parameter);
    ::setpriority(PRIO_PROCESS, 0, 19);
  }
  // Out of the way first: each may sit on the number that another is to have.
  const int stop_high = ::fcntl(stop_fd, F_DUPFD, kDoorbellDescriptor + 1);
  const int report_high = ::fcntl(report_fd, F_DUPFD, kDoorbellDescriptor + 1);
  const int doorbell_high = command.doorbell < 0 ? -1 : ::fcntl(command.doorbell, F_DUPFD, kDoorbellDescriptor + 1);
  const int null_fd = ::open("/dev/null", O_RDWR);
  if (null_fd >= 0) {
    ::dup2(null_fd, STDIN_FILENO);
    ::dup2(null_fd, STDOUT_FILENO);
  }
  if (::dup2(stop_high, kStopDescriptor) < 0 || ::dup2(report_high, kReportDescriptor) < 0) ::_exit(kExecFailed);
  int last = kReportDescriptor;
  if (command.doorbell >= 0) {
    last = kDoorbellDescriptor;
    if (::dup2(doorbell_high, kDoorbellDescriptor) < 0) ::_exit(kExecFailed);
  }
  ::syscall(SYS_close_range, static_cast<unsigned>(last + 1), ~0U, 0U);
  ::execv(command.executable.c_str(), arguments);
  ::_exit(kExecFailed);
}

// Takes the memory of a process that was killed, which would give it back at its own priority: an idle one never gets
// to it on a busy machine (process_mrelease(2), Linux 5.15; the C library of Debian 12 has no name for it). Where the
// kernel refuses, the process does it in its own time.
void release_memory_of(pid_t pid) {
  const int pid_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pid_fd < 0) return;
  ::syscall(SYS_process_mrelease, pid_fd, 0);
  ::close(pid_fd);
}

// Cuts the pipe's bytes into lines.
class LineReader {
 public:
  explicit LineReader(const std::function<void(std::string_view)>& on_line) : on_line_(on_line) {}

  // False when the writer sends a line without end.
  bool take(std::string_view bytes) {
    buffer_.append(bytes);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      on_line_(std::string_view(buffer_).substr(begin, end - begin));
    }
    buffer_.erase(0, begin);
    return buffer_.size() <= kLineBytesMax;
  }

 private:
  const std::function<void(std::string_view)>& on_line_;
  std::string buffer_;
};

}  // namespace

Result<std::unique_ptr<ProbeProcess>> ProbeProcess::start(const Command& command) {
  auto page = StopPage::create();
  if (!page.ok()) return page.error();
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) return Error{ErrorCode::kIo, "pipe", std::strerror(errno)};
  std::vector<std::string> words = {command.executable};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become_probe(command, arguments.data(), page->fd(), report[1], parent);
  }
  ::close(report[1]);
  if (pid < 0) {
    ::close(report[0]);
    return Error{ErrorCode::kIo, "fork", std::strerror(errno)};
  }
  return std::unique_ptr<ProbeProcess>(new ProbeProcess(std::move(page).value(), pid, report[0]));
}

ProbeProcess::~ProbeProcess() {
  kill_and_reap();
  ::close(report_);
}

void ProbeProcess::kill() {
  page_.request();
  const std::lock_guard lock(pid_mutex_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  release_memory_of(pid_);
}

bool ProbeProcess::reap_if_ended(int& status) {
  const std::lock_guard lock(pid_mutex_);
  if (pid_ >= 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
}

void ProbeProcess::kill_and_reap() {
  int status = 0;
  if (reap_if_ended(status)) return;
  ::kill(pid_, SIGKILL);
  release_memory_of(pid_);
  while (!reap_if_ended(status)) ::poll(nullptr, 0, 1);
}

MonotonicTime ProbeProcess::silence() {
  page_.request();
  {
    const std::lock_guard lock(pid_mutex_);
    if (pid_ >= 0) page_.interrupt_readers(pid_, StopPage::Whom::kAgain);
  }
  const MonotonicTime told = now();
  // Awake: from a sleep of 20 us this thread came back up to 4 ms later, to a CPU that was clearing huge pages.
  while (page_.someone_reads() && now() - told < kAnswerTime) {
  }
  // Who still shows waits for a CPU. A worker may have interrupted it, long before this thread was told of the packet.
  return page_.someone_reads() ? std::max(page_.last_load(), page_.interrupted_at()) : page_.last_load();
}

ProbeProcess::End ProbeProcess::wait(Duration limit, const std::function<void(std::string_view)>& on_line,
                                     const std::function<void()>& on_round) {
  MonotonicTime deadline = now() + limit;
  bool stopped = false;
  LineReader lines(on_line);
  std::array<char, 4096> piece;
  for (;;) {
    if (on_round) on_round();
    if (page_.requested() && !stopped) {
      stopped = true;
      silence();
      deadline = std::min(deadline, now() + kExitGrace);
    }
    if (now() >= deadline) {
      kill_and_reap();
      return page_.requested() ? End::kStopped : End::kTimeout;
    }
    pollfd waiting{report_, POLLIN, 0};
    if (::poll(&waiting, 1, kPollMilliseconds) <= 0) continue;
    const ssize_t got = ::read(report_, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || !lines.take({piece.data(), static_cast<std::size_t>(got)})) break;
  }
  // The pipe is closed: the child has ended, or has nothing more to say and is given a moment for that.
  const MonotonicTime grace_end = now() + kExitGrace;
  int status = 0;
  bool ended = false;
  while (!(ended = reap_if_ended(status)) && now() < grace_end) ::poll(nullptr, 0, 1);
  kill_and_reap();
  if (page_.requested()) return End::kStopped;
  return ended && WIFEXITED(status) ? End::kExited : End::kSignaled;
}

}  // namespace rooflined::ceiling
