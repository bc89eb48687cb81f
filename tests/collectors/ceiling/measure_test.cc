// The whole measurement on small memory and a fake system: what it reports is there, and what stops it does.

#include "collectors/ceiling/measure.h"

#include "collectors/ceiling/kernels.h"
#include "collectors/ceiling/worker_pool.h"
#include "tests/collectors/ceiling/fake_tree.h"
#include "tests/collectors/ceiling/knocker.h"
#include "tests/support/catch.h"

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;

namespace {

std::map<std::string, std::string> small_machine() {
  return {{"/proc/meminfo", "MemTotal: 4000000 kB\nMemFree: 3000000 kB\n"},
          {"/proc/loadavg", "0.10 0.10 0.10 1/1 1\n"},
          {"/proc/stat", "cpu 1 0 1 1 0 0 0 0 0 0\n"},
          {"/proc/vmstat", "pgsteal_kswapd 0\npgsteal_direct 0\ncompact_stall 0\n"},
          {"/sys/devices/system/cpu/online", "0\n"},
          {"/sys/devices/system/cpu/cpu0/cache/index3/size", "1024K\n"},
          {"/sys/devices/system/cpu/cpu0/cache/index3/level", "3\n"},
          {"/sys/devices/system/cpu/cpu0/cache/index3/type", "Unified\n"},
          {"/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list", "0\n"}};
}

Options options_in(const FakeTree& tree) {
  Options options;
  options.root = tree.root();
  options.working_set = 8 * kMiB;
  options.sweep_budget = from_seconds(1000);
  return options;
}

StopPage stop_page() {
  auto page = StopPage::create();
  REQUIRE(page.ok());
  return std::move(page).value();
}

}  // namespace

TEST_CASE("a measurement carries every cell with all its samples") {
  const FakeTree tree(small_machine());
  const StopPage stop = stop_page();
  unsigned progress_calls = 0;
  const auto measured = measure(options_in(tree), stop, [&](const Progress&) { ++progress_calls; });
  REQUIRE(measured.ok());
  CHECK(measured->working_set == 8 * kMiB);
  CHECK(measured->llc == 1 * kMiB);
  CHECK_FALSE(measured->cache_inflated);
  CHECK(measured->repetitions == 5);
  CHECK(measured->duration_seconds > 0);
  CHECK(measured->instruction_set == instruction_sets().front());
  REQUIRE(measured->copy);
  CHECK(*measured->copy > 0);
  REQUIRE(measured->cells.size() == kKernels.size());
  CHECK(measured->cells.back().kernel == "copy");
  for (const MeasuredCell& cell : measured->cells) {
    CHECK(cell.samples.size() == 5);
    CHECK(cell.threads == 1);
    CHECK(cell.best >= cell.median);
    CHECK(cell.stable == (cell.median >= 0.75 * cell.best));
  }
  if (measured->winner) {
    CHECK(measured->winner->samples.size() == 9);
    CHECK(measured->winner->kernel != "copy");
    CHECK(measured->stable() == (measured->verdict == Verdict::kConfirmed));
  }
  CHECK(progress_calls > 0);
}

TEST_CASE("D03: under half a CPU the quota is measured, not the memory") {
  auto files = small_machine();
  files["/sys/fs/cgroup/cpu.max"] = "50000 100000\n";
  const FakeTree tree(files);
  const StopPage stop = stop_page();
  const auto measured = measure(options_in(tree), stop, nullptr);
  REQUIRE(measured.ok());
  CHECK(measured->verdict == Verdict::kThrottled);
  CHECK_FALSE(measured->adoptable());
  REQUIRE_FALSE(measured->warnings.empty());
  CHECK(measured->warnings.front().starts_with("throttled"));
}

TEST_CASE("D21: a run whose CPU the host took is contended") {
  const FakeTree tree(small_machine());
  const StopPage stop = stop_page();
  unsigned calls = 0;
  const auto measured = measure(options_in(tree), stop, [&](const Progress&) {
    if (++calls == 5) tree.write("/proc/stat", "cpu 401 0 21 1 0 0 0 180 0 0\n");
  });
  REQUIRE(measured.ok());
  CHECK(measured->surroundings.steal_share == Approx(0.3));
  CHECK(measured->verdict == Verdict::kContended);
}

TEST_CASE("a run beside which others kept the CPUs busy is contended") {
  auto files = small_machine();
  files["/proc/self/stat"] = "7 (a (b) c) R 1 1 1 0 -1 0 0 0 0 0 100 100 0 0 20 0 1 0 9\n";
  files["/proc/uptime"] = "100.00 90.00\n";
  const FakeTree tree(files);
  const StopPage stop = stop_page();
  unsigned calls = 0;
  const auto measured = measure(options_in(tree), stop, [&](const Progress&) {
    if (++calls != 5) return;
    // Ten seconds: ours ran for five of them, all together for nine.
    tree.write("/proc/uptime", "110.00 90.00\n");
    tree.write("/proc/self/stat", "7 (a (b) c) R 1 1 1 0 -1 0 0 0 0 0 500 200 0 0 20 0 1 0 9\n");
    tree.write("/proc/stat", "cpu 901 0 1 101 0 0 0 0 0 0\n");
  });
  REQUIRE(measured.ok());
  CHECK(measured->surroundings.others_cpus == Approx(0.4));
  CHECK(measured->verdict == Verdict::kContended);
}

TEST_CASE("a run that the quota stopped now and then is throttled") {
  auto files = small_machine();
  files["/sys/fs/cgroup/cpu.max"] = "100000 100000\n";
  files["/sys/fs/cgroup/cpu.stat"] = "nr_periods 100\nnr_throttled 7\n";
  const FakeTree tree(files);
  const StopPage stop = stop_page();
  unsigned calls = 0;
  const auto measured = measure(options_in(tree), stop, [&](const Progress&) {
    if (++calls == 5) tree.write("/sys/fs/cgroup/cpu.stat", "nr_periods 200\nnr_throttled 9\n");
  });
  REQUIRE(measured.ok());
  CHECK(measured->surroundings.throttled_periods == 2);
  CHECK(measured->verdict == Verdict::kThrottled);
}

TEST_CASE("a later measurement starts from the winner") {
  const FakeTree tree(small_machine());
  const StopPage stop = stop_page();
  Options options = options_in(tree);
  options.start_from = StartFrom{"linear", 1, true};
  auto measured = measure(options, stop, nullptr);
  REQUIRE(measured.ok());
  REQUIRE(measured->winner);
  CHECK(measured->winner->kernel == "linear");
  CHECK(measured->winner->samples.size() == 9);
  CHECK(measured->cells.empty());
  CHECK_FALSE(measured->copy);

  options.start_from->alone = false;
  measured = measure(options, stop, nullptr);
  REQUIRE(measured.ok());
  CHECK(measured->cells.front().kernel == "linear");
  CHECK(measured->cells.size() == kKernels.size());

  options.start_from = StartFrom{"of another version", 1, true};
  measured = measure(options, stop, nullptr);
  REQUIRE(measured.ok());
  CHECK(measured->cells.size() == kKernels.size());
  CHECK(measured->warnings.back().find("whole sweep") != std::string::npos);

  options.numa_nodes = {3};
  CHECK(measure(options, stop, nullptr).error().code == ErrorCode::kInvalid);
}

TEST_CASE("reclaim seen during the run ends it") {
  const FakeTree tree(small_machine());
  const StopPage stop = stop_page();
  unsigned calls = 0;
  const auto measured = measure(options_in(tree), stop, [&](const Progress&) {
    if (++calls == 3) tree.write("/proc/vmstat", "pgsteal_kswapd 64\npgsteal_direct 0\ncompact_stall 0\n");
  });
  REQUIRE_FALSE(measured.ok());
  CHECK(measured.error().where == "reclaim");
  CHECK(calls == 3);
}

TEST_CASE("a stop in any phase ends the measurement with nothing") {
  const FakeTree tree(small_machine());
  Options options = options_in(tree);
  options.working_set = 1 * kMiB;
  unsigned all = 0;
  {
    const StopPage stop = stop_page();
    REQUIRE(measure(options, stop, [&](const Progress&) { ++all; }).ok());
  }
  // Between the cells of the sweep, in the confirmation, in the copy at the end.
  for (const unsigned last : {1U, all / 2, all - 1}) {
    const StopPage stop = stop_page();
    unsigned calls = 0;
    const auto measured = measure(options, stop, [&](const Progress&) {
      if (++calls == last) stop.request();
    });
    INFO("stopped at step " << last << " of " << all);
    REQUIRE_FALSE(measured.ok());
    CHECK(measured.error().code == ErrorCode::kBusy);
    CHECK(calls == last);
  }
  const StopPage before = stop_page();
  before.request();
  CHECK(measure(options, before, nullptr).error().code == ErrorCode::kBusy);
}

TEST_CASE("a stop while the buffer is filled ends the measurement") {
  const FakeTree tree(small_machine());
  Options options = options_in(tree);
  options.working_set = 64 * kMiB;
  const StopPage stop = stop_page();
  std::thread stopper([&] {
    while (!stop.someone_reads()) std::this_thread::yield();
    stop.request();
  });
  const auto measured = measure(options, stop, nullptr);
  stopper.join();
  REQUIRE_FALSE(measured.ok());
  CHECK(measured.error().code == ErrorCode::kBusy);
  CHECK_FALSE(stop.someone_reads());
}

namespace {

// Packets that are no requests, all the time from start() on.
class PassersBy {
 public:
  explicit PassersBy(const Knocker& door) : thread_([this, &door] { pass(door); }) {}
  ~PassersBy() {
    started_ = true;
    ended_ = true;
    thread_.join();
  }
  void start() { started_ = true; }
  void end() { ended_ = true; }

 private:
  void pass(const Knocker& door) const {
    while (!started_) std::this_thread::sleep_for(std::chrono::microseconds(100));
    while (!ended_) {
      door.knock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      door.judge();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::atomic<bool> started_{false};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

constexpr const char* kHeldUp = "no requests for tokens";

}  // namespace

TEST_CASE("packets that are no requests and never cease make a measurement contended, not low and stable") {
  const FakeTree tree(small_machine());
  StopPage stop = stop_page();
  const Knocker door(stop);
  WorkerPool::heed_interrupts();
  PassersBy passers_by(door);
  passers_by.start();
  const auto measured = measure(options_in(tree), stop, [&](const Progress&) { passers_by.end(); });
  REQUIRE(measured.ok());
  CHECK(measured->verdict == Verdict::kContended);
  REQUIRE_FALSE(measured->warnings.empty());
  CHECK(measured->warnings.back().find(kHeldUp) != std::string::npos);
}

TEST_CASE("so do those that come while the nodes are read, after everything else") {
  auto files = small_machine();
  files["/sys/devices/system/cpu/online"] = "0-1\n";
  files["/sys/devices/system/node/has_memory"] = "0-1\n";
  for (const std::string node : {"0", "1"}) {
    const std::string folder = "/sys/devices/system/node/node" + node;
    files[folder + "/cpulist"] = node + "\n";
    files[folder + "/meminfo"] = "Node " + node + " MemTotal: 2000000 kB\nNode " + node + " MemFree: 1500000 kB\n";
  }
  const FakeTree tree(files);
  Options options = options_in(tree);
  options.thread_counts = {2};
  StopPage stop = stop_page();
  const Knocker door(stop);
  WorkerPool::heed_interrupts();
  PassersBy passers_by(door);
  unsigned copies = 0;
  const auto measured = measure(options, stop, [&](const Progress& progress) {
    constexpr unsigned kNotCounted = 1;  // the first of a cell
    if (progress.kernel == kCopyKernel && ++copies == kNotCounted + kRepetitionsMin) passers_by.start();
  });
  REQUIRE(measured.ok());
  CHECK(measured->nodes.size() == 2);
  CHECK(measured->verdict == Verdict::kContended);
  REQUIRE_FALSE(measured->warnings.empty());
  CHECK(measured->warnings.back().find(kHeldUp) != std::string::npos);
}

TEST_CASE("what cannot be measured is an error, and says why") {
  const FakeTree tree(small_machine());
  const StopPage stop = stop_page();
  Options options = options_in(tree);
  options.thread_counts = {1, 9};
  CHECK(measure(options, stop, nullptr).error().code == ErrorCode::kInvalid);
  options.thread_counts = {0};
  CHECK(measure(options, stop, nullptr).error().code == ErrorCode::kInvalid);
  options = options_in(tree);
  options.working_set = 100 * kGiB;
  CHECK(measure(options, stop, nullptr).error().where == "memory");
}

TEST_CASE("fewer than five repetitions are five") {
  const FakeTree tree(small_machine());
  const StopPage stop = stop_page();
  Options options = options_in(tree);
  options.repetitions = 1;
  const auto measured = measure(options, stop, nullptr);
  REQUIRE(measured.ok());
  CHECK(measured->repetitions == 5);
}
