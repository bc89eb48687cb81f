#include "daemon/child_process.h"

#include "daemon/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

namespace rooflined::daemon {
namespace {

constexpr int kPollMilliseconds = 100;
constexpr int kDrainsMax = 1000;  // of what is left in the pipes: 64 KiB each, and a pipe holds that much

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  bool open() const { return ends_[0] >= 0; }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// In the child, between fork and exec: only calls that signal-safety(7) allows. Does not come back.
[[noreturn]] void become(char* const* arguments, pid_t parent, const Pipe& out, const Pipe& err, const Pipe& failure) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  const int empty = ::open("/dev/null", O_RDONLY);
  bool ready = empty >= 0 && ::dup2(empty, STDIN_FILENO) >= 0;
  ready = ready && ::dup2(out.writer(), STDOUT_FILENO) >= 0 && ::dup2(err.writer(), STDERR_FILENO) >= 0;
  if (ready) ::execv(arguments[0], arguments);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(failure.writer(), &error, sizeof(error));
  ::_exit(127);
}

// What is there to read now. False at the end.
bool read_some(int fd, std::string& text, std::size_t bytes_max) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  text.append(buffer.data(), std::min(static_cast<std::size_t>(got), bytes_max - std::min(bytes_max, text.size())));
  return true;
}

Error not_started(const std::string& path, int error) {
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : error == EACCES ? ErrorCode::kDenied : ErrorCode::kIo;
  return {code, path, std::string("cannot be run: ") + std::strerror(error)};
}

// Reads both streams until they end, or the child does: what it started itself may hold them open.
ChildOutcome follow(pid_t child, Pipe& out, Pipe& err, const ChildOptions& options, const std::function<bool()>& stop) {
  ChildOutcome outcome;
  const MonotonicTime end = monotonic_now() + options.limit;
  std::array<pollfd, 2> files{{{out.reader(), POLLIN, 0}, {err.reader(), POLLIN, 0}}};
  std::array<std::string*, 2> texts{&outcome.out, &outcome.err};
  int status = 0;
  bool ended = false;
  bool killed = false;
  for (int drains = 0; drains < kDrainsMax;) {
    const int ready = ::poll(files.data(), files.size(), ended ? 0 : kPollMilliseconds);
    for (std::size_t i = 0; ready > 0 && i < files.size(); ++i) {
      if (files[i].revents != 0 && !read_some(files[i].fd, *texts[i], options.output_bytes_max)) files[i].fd = -1;
    }
    if (ended && ready <= 0) break;
    if (ended) {
      ++drains;
      continue;
    }
    ended = ::waitpid(child, &status, WNOHANG) == child;
    if (ended) ::kill(-child, SIGKILL);  // whatever it left behind
    if (ended || killed) continue;
    const bool stopped = stop();
    if (!stopped && monotonic_now() < end) continue;
    outcome.end = stopped ? ChildOutcome::End::kStopped : ChildOutcome::End::kTimeLimit;
    ::kill(-child, SIGKILL);
    killed = true;
  }
  if (killed) return outcome;
  outcome.end = WIFSIGNALED(status) ? ChildOutcome::End::kSignalled : ChildOutcome::End::kExited;
  outcome.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

}  // namespace

Result<ChildOutcome> run_child(const ChildOptions& options, const std::function<bool()>& stop) {
  std::vector<std::string> texts = options.arguments;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  Pipe out, err, failure;
  if (!out.open() || !err.open() || !failure.open()) return Error{ErrorCode::kIo, "pipe", std::strerror(errno)};
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return Error{ErrorCode::kIo, "fork", std::strerror(errno)};
  if (child == 0) become(arguments.data(), parent, out, err, failure);
  ::setpgid(child, child);  // here too: whoever comes first
  out.close_end(1);
  err.close_end(1);
  failure.close_end(1);
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure.reader(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    ::waitpid(child, nullptr, 0);
    return not_started(options.arguments.front(), error);
  }
  return follow(child, out, err, options, stop);
}

}  // namespace rooflined::daemon
