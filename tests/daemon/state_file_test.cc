// The state file against kill -9, a full disk, folders that cannot be written, and other writers.

#include "daemon/state_file.h"

#include "daemon/ceiling_state.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace rooflined;
using namespace rooflined::daemon;

namespace {

const ceiling::MachineIdentity kMachine = {"Some CPU", "6.1.0", 64 * kGiB, 32 * kMiB};
constexpr std::int64_t kTimeFirst = 1'700'000'000'000'000'000;

CeilingState empty_state() {
  CeilingState state;
  state.identity = kMachine;
  return state;
}

// The `number`th measurement: told apart by its time.
ceiling::Measurement measurement() {
  ceiling::Measurement measured;
  measured.verdict = ceiling::Verdict::kConfirmed;
  measured.winner = ceiling::MeasuredCell{"linear", 2, 30e9, 29e9, true, std::vector<double>(9, 29e9)};
  measured.working_set = kGiB;
  measured.cells = std::vector<ceiling::MeasuredCell>(12, *measured.winner);
  return measured;
}

Status add(const std::string& directory, std::int64_t number) {
  return update_ceiling_state(
             directory, empty_state(),
             [&](CeilingState& state) { state.take(measurement(), WallTime::from_ns(kTimeFirst + number)); })
      .saved;
}

std::int64_t newest(const CeilingState& state) {
  return state.history.empty() ? -1 : state.history.results().back().measured_at.ns() - kTimeFirst;
}

// Runs `work` in a process of its own; its exit status is 0 where that returned true.
template <typename Work>
pid_t in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  return child;
}

bool succeeded(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("killed five hundred times during saves: the state loads and holds what was adopted last") {
  const TemporaryFolder folder;
  REQUIRE(add(folder.path(), 0).ok());
  std::mt19937 random(1);
  std::int64_t known = 0;
  int lost = 0;
  for (int kill = 0; kill < 500; ++kill) {
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    const std::int64_t first = known + 1000;
    const pid_t child = in_child([&] {
      for (std::int64_t number = first;; ++number) {
        if (!add(folder.path(), number).ok()) return false;
        if (::write(pipe[1], &number, sizeof number) != sizeof number) return false;
      }
    });
    ::close(pipe[1]);
    // Every other one in a later save than its first: a busy machine may not come to the end of one in 8 ms.
    if (kill % 2 == 0) REQUIRE(::read(pipe[0], &known, sizeof known) == sizeof known);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::int64_t number = 0;
    while (::read(pipe[0], &number, sizeof number) == sizeof number) known = number;
    ::close(pipe[0]);
    const CeilingState state = load_ceiling_state(folder.path(), kMachine);
    lost += state.history.adopted() == nullptr || newest(state) < known || !state.last ? 1 : 0;
  }
  CHECK(lost == 0);
  CHECK(known > 0);
}

TEST_CASE("several programs add results at once, and none is lost") {
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (std::int64_t child = 0; child < 7; ++child) {
    children.push_back(in_child([&] { return add(folder.path(), child).ok(); }));
  }
  for (const pid_t child : children) CHECK(succeeded(child));
  const CeilingState state = load_ceiling_state(folder.path(), kMachine);
  CHECK(state.history.results().size() == 7);
}

TEST_CASE("a disk that is full: the old file stays, and what was measured comes back to the caller") {
  const TemporaryFolder folder;
  REQUIRE(add(folder.path(), 1).ok());
  const std::string before = folder.read("ceiling.json");
  CHECK(succeeded(in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    const CeilingUpdate update = update_ceiling_state(folder.path(), empty_state(), [](CeilingState& state) {
      state.take(measurement(), WallTime::from_ns(kTimeFirst + 2));
    });
    return !update.saved.ok() && update.saved.error().code == ErrorCode::kIo && newest(update.state) == 2 &&
           update.state.history.results().size() == 2;
  })));
  CHECK(folder.read("ceiling.json") == before);
  CHECK_FALSE(std::filesystem::exists(ceiling_state_path(folder.path()) + ".new"));
  CHECK(add(folder.path(), 3).ok());
}

TEST_CASE("a folder that cannot be written, or is not there") {
  const TemporaryFolder folder;
  REQUIRE(add(folder.path(), 1).ok());
  CHECK_FALSE(add(folder.path() + "/none", 2).ok());
  REQUIRE(::chmod(folder.path().c_str(), 0555) == 0);
  CHECK(succeeded(in_child([&] {
    // Root may write anywhere.
    if (::geteuid() == 0 && ::setuid(65534) != 0) return false;
    const CeilingUpdate update = update_ceiling_state(folder.path(), empty_state(), [](CeilingState& state) {
      state.take(measurement(), WallTime::from_ns(kTimeFirst + 2));
    });
    return !update.saved.ok() && newest(update.state) == 2 && update.state.history.results().size() == 2;
  })));
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  CHECK(newest(load_ceiling_state(folder.path(), kMachine)) == 1);
}

TEST_CASE("a lock is waited for, not for ever, and goes with its holder") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/lock";
  {
    const auto held = FileLock::take(path, Duration(0));
    REQUIRE(held.ok());
    const auto second = FileLock::take(path, std::chrono::milliseconds(30));
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().code == ErrorCode::kBusy);
  }
  CHECK(FileLock::take(path, Duration(0)).ok());
  CHECK_FALSE(FileLock::take(folder.path() + "/none/lock", Duration(0)).ok());
}

TEST_CASE("a stamp tells one state of a file from another") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  CHECK(stamp_of(path) == FileStamp());
  REQUIRE(replace_file(path, "one").ok());
  const FileStamp first = stamp_of(path);
  CHECK(first == stamp_of(path));
  REQUIRE(replace_file(path, "two").ok());
  CHECK_FALSE(first == stamp_of(path));
  CHECK(read_file(path, 3).value() == "two");
  CHECK(read_file(path, 2).error().code == ErrorCode::kLimit);
  CHECK(read_file(path + "x", 2).error().code == ErrorCode::kNotFound);
}
