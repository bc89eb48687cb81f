// A child that reports, crashes, hangs or is stopped: its end is told apart, and nothing of it is left.

#include "collectors/ceiling/probe_process.h"

#include "tests/support/catch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;

namespace {

constexpr Duration kLong = std::chrono::seconds(200);

std::unique_ptr<ProbeProcess> shell(const std::string& script) {
  auto process = ProbeProcess::start({"/bin/sh", {"-c", script}, ProbeProcess::Priority::kNormal});
  REQUIRE(process.ok());
  return std::move(process).value();
}

bool gone(pid_t pid) {
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

struct Ended {
  ProbeProcess::End end;
  std::vector<std::string> lines;
};
Ended wait_for(ProbeProcess& process, Duration limit = kLong) {
  Ended ended{};
  ended.end = process.wait(limit, [&](std::string_view line) { ended.lines.emplace_back(line); });
  return ended;
}

}  // namespace

TEST_CASE("lines of the report arrive whole, the end is the child's own") {
  const auto process = shell("printf 'one\\ntw' >&4; printf 'o\\n' >&4; echo three >&4; exit 3");
  const pid_t pid = process->pid();
  const Ended ended = wait_for(*process);
  CHECK(ended.end == ProbeProcess::End::kExited);
  CHECK(ended.lines == std::vector<std::string>{"one", "two", "three"});
  CHECK(gone(pid));
}

TEST_CASE("a crash is a signal, not an exit") {
  const auto process = shell("echo half >&4; kill -SEGV $$");
  const Ended ended = wait_for(*process);
  CHECK(ended.end == ProbeProcess::End::kSignaled);
  CHECK(ended.lines.size() == 1);
}

TEST_CASE("a program that is not there ends at once") {
  auto process = ProbeProcess::start({"/nonexistent/program", {}, ProbeProcess::Priority::kNormal});
  REQUIRE(process.ok());
  CHECK(wait_for(**process).lines.empty());
}

TEST_CASE("a child that does not heed the stop page is killed") {
  const auto process = shell("echo ready >&4; exec sleep 1000");
  const pid_t pid = process->pid();
  Ended ended{};
  ended.end = process->wait(kLong, [&](std::string_view) { process->stop(); });
  CHECK(ended.end == ProbeProcess::End::kStopped);
  CHECK(gone(pid));
}

TEST_CASE("kill() ends a child at once, from any thread") {
  const auto process = shell("echo ready >&4; exec sleep 1000");
  const pid_t pid = process->pid();
  std::thread other;
  const auto end = process->wait(kLong, [&](std::string_view) { other = std::thread([&] { process->kill(); }); });
  other.join();
  CHECK(end == ProbeProcess::End::kStopped);
  CHECK(gone(pid));
  process->kill();  // and harms nobody afterwards
  process->silence();
}

TEST_CASE("the rounds of wait() may stop the probe") {
  const auto process = shell("exec sleep 1000");
  unsigned rounds = 0;
  const auto end = process->wait(
      kLong, [](std::string_view) {},
      [&] {
        if (++rounds == 3) process->stop();
      });
  CHECK(end == ProbeProcess::End::kStopped);
  CHECK(rounds >= 3);  // and they go on until the child ends
}

TEST_CASE("the deadline kills") {
  const auto process = shell("exec sleep 1000");
  const pid_t pid = process->pid();
  CHECK(wait_for(*process, std::chrono::milliseconds(1)).end == ProbeProcess::End::kTimeout);
  CHECK(gone(pid));
}

TEST_CASE("a child that is never waited for is killed with its object") {
  auto process = shell("exec sleep 1000");
  const pid_t pid = process->pid();
  process.reset();
  CHECK(gone(pid));
}

TEST_CASE("a line without end does not fill the memory") {
  const auto process = shell("exec tr '\\0' x </dev/zero >&4");
  CHECK(wait_for(*process).lines.empty());
}

TEST_CASE("idle priority is the child's, not the parent's") {
  auto process = ProbeProcess::start(
      {"/bin/sh", {"-c", "ps -o cls=,ni= -p $$ >&4 2>/dev/null || echo none >&4"}, ProbeProcess::Priority::kIdle});
  REQUIRE(process.ok());
  const Ended ended = wait_for(**process);
  REQUIRE(ended.lines.size() == 1);
  if (ended.lines.front() != "none") CHECK(ended.lines.front().find("IDL") != std::string::npos);
  CHECK(sched_getscheduler(0) == SCHED_OTHER);
}

TEST_CASE("the child has the stop page and the report, and no other descriptor of ours") {
  // The shell's own listing adds one descriptor for the folder it reads.
  const auto process = shell("ls /proc/self/fd | tr '\\n' ' ' >&4; echo >&4");
  const Ended ended = wait_for(*process);
  REQUIRE(ended.lines.size() == 1);
  CHECK(ended.lines.front() == "0 1 2 3 4 5 ");
}

TEST_CASE("the child has the doorbell's socket where there is one") {
  int pipe_fds[2];
  REQUIRE(::pipe2(pipe_fds, O_CLOEXEC) == 0);
  REQUIRE(::write(pipe_fds[1], "rang\n", 5) == 5);
  const std::string listing = "read word <&5; echo $word >&4; ls /proc/self/fd | tr '\\n' ' ' >&4; echo >&4";
  auto process = ProbeProcess::start({"/bin/sh", {"-c", listing}, ProbeProcess::Priority::kNormal, pipe_fds[0]});
  REQUIRE(process.ok());
  const Ended ended = wait_for(**process);
  CHECK(ended.lines == std::vector<std::string>{"rang", "0 1 2 3 4 5 6 "});
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
}

TEST_CASE("the page is shared: a request of one process is seen by another") {
  auto page = StopPage::create();
  REQUIRE(page.ok());
  CHECK_FALSE(page->requested());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto other = StopPage::attach(page->fd());
    if (other.ok()) other->request();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(page->requested());
  CHECK_FALSE(StopPage::attach(-1).ok());
}

TEST_CASE("the page tells who still reads, and when the last load was") {
  auto page = StopPage::create();
  REQUIRE(page.ok());
  CHECK_FALSE(page->someone_reads());
  CHECK(page->last_load() == MonotonicTime());
  page->begin_reading(0, 41);
  page->begin_reading(StopPage::kPlaces - 1, 42);
  page->begin_reading(StopPage::kPlaces, 43);  // does not show
  CHECK(page->readers().reading == 2);
  const cpu_set_t cpus = page->reading_cpus();
  CHECK(CPU_COUNT(&cpus) == 2);
  CHECK(CPU_ISSET(StopPage::kPlaces - 1, &cpus));
  page->end_reading(0, MonotonicTime::from_ns(700));
  page->end_reading(StopPage::kPlaces - 1, MonotonicTime::from_ns(500));  // its stamp was taken before the other's
  page->end_reading(StopPage::kPlaces, MonotonicTime::from_ns(600));
  CHECK_FALSE(page->someone_reads());
  CHECK(page->last_load() == MonotonicTime::from_ns(700));
}

namespace {

volatile std::sig_atomic_t interrupts = 0;
void count_interrupt(int) {
  interrupts = interrupts + 1;
}

}  // namespace

TEST_CASE("readers are interrupted once, until they read anew") {
  auto page = StopPage::create();
  REQUIRE(page.ok());
  struct sigaction action {};
  action.sa_handler = count_interrupt;
  struct sigaction before {};
  REQUIRE(::sigaction(kInterruptSignal, &action, &before) == 0);
  page->interrupt_readers(::getpid(), StopPage::Whom::kOnce);
  CHECK(interrupts == 0);
  CHECK(page->interrupted_at() == MonotonicTime());
  page->begin_reading(7, ::gettid());
  page->interrupt_readers(::getpid(), StopPage::Whom::kOnce);
  page->interrupt_readers(::getpid(), StopPage::Whom::kOnce);
  CHECK(interrupts == 1);
  page->interrupt_readers(::getpid(), StopPage::Whom::kAgain);
  CHECK(interrupts == 2);
  CHECK(page->readers().reading == 0);
  CHECK(page->readers().interrupted == 1);
  CHECK(page->someone_reads());
  CHECK(page->interrupted_at() > MonotonicTime());
  page->end_reading(7, MonotonicTime::from_ns(5));
  CHECK_FALSE(page->someone_reads());
  page->begin_reading(7, ::gettid());
  CHECK(page->readers().reading == 1);
  page->interrupt_readers(::getpid(), StopPage::Whom::kOnce);
  CHECK(interrupts == 3);
  REQUIRE(::sigaction(kInterruptSignal, &before, nullptr) == 0);
}

namespace {

// This program once more, at one of its hidden test cases.
std::unique_ptr<ProbeProcess> child_case(const char* tag) {
  auto process = ProbeProcess::start({"/proc/self/exe", {tag}, ProbeProcess::Priority::kNormal});
  REQUIRE(process.ok());
  return std::move(process).value();
}

// A worker that has lost its CPU within a block: it shows on the page and takes no signal.
void lose_the_cpu(const StopPage& page) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, kInterruptSignal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  page.begin_reading(0, ::gettid());
}

void say_ready_and_wait() {
  if (::write(kReportDescriptor, "ready\n", 6) != 6) ::_exit(1);
  for (;;) ::pause();
}

MonotonicTime now() {
  return MonotonicTime(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

TEST_CASE("the child of the next but one", "[.waits_for_a_cpu]") {
  const auto page = StopPage::attach(kStopDescriptor);
  if (!page.ok()) ::_exit(1);
  lose_the_cpu(*page);
  say_ready_and_wait();
}

TEST_CASE("the child of the next but one, whose other worker has looked", "[.was_interrupted]") {
  const auto page = StopPage::attach(kStopDescriptor);
  if (!page.ok()) ::_exit(1);
  lose_the_cpu(*page);
  page->interrupt_readers(::getpid(), StopPage::Whom::kOnce);
  std::this_thread::sleep_for(2 * kAnswerTime);
  say_ready_and_wait();
}

TEST_CASE("a worker that waits for a CPU loaded last when it was interrupted") {
  const auto process = child_case("[.waits_for_a_cpu]");
  MonotonicTime asked, first, second;
  process->wait(kLong, [&](std::string_view) {
    asked = now();
    first = process->silence();
    second = process->silence();
  });
  CHECK(first >= asked);
  CHECK(second == first);
}

TEST_CASE("a worker that another one has interrupted loaded last then, and not when somebody asks") {
  const auto process = child_case("[.was_interrupted]");
  MonotonicTime asked, last_load;
  process->wait(kLong, [&](std::string_view) {
    asked = now();
    last_load = process->silence();
  });
  CHECK(last_load > MonotonicTime());
  CHECK(last_load < asked);
}

TEST_CASE("a parent that is killed takes its probe along") {
  int pipe_fds[2];
  REQUIRE(::pipe(pipe_fds) == 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    auto process = ProbeProcess::start({"/bin/sleep", {"1000"}, ProbeProcess::Priority::kNormal});
    const pid_t probe = process.ok() ? process.value()->pid() : -1;
    if (::write(pipe_fds[1], &probe, sizeof probe) != sizeof probe) ::_exit(1);
    for (;;) ::pause();
  }
  pid_t probe = -1;
  REQUIRE(::read(pipe_fds[0], &probe, sizeof probe) == sizeof probe);
  REQUIRE(probe > 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  // Whoever adopts it reaps it; until then it is a zombie, which kill() still finds.
  const auto ended = [&] {
    if (gone(probe)) return true;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/stat", probe);
    char text[256] = {};
    FILE* const file = std::fopen(path, "r");
    if (file == nullptr) return true;
    const std::size_t got = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    return std::string(text, got).find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 20000 && !ended(); ++i) ::usleep(1000);
  CHECK(ended());
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
}
