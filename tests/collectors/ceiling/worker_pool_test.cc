// The pool on real memory, small: bytes are counted right, pages differ, and a stop ends the reading.

#include "collectors/ceiling/worker_pool.h"

#include "collectors/ceiling/probe_process.h"
#include "tests/collectors/ceiling/knocker.h"
#include "tests/support/catch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;

namespace {

// `count` workers on the CPUs that are there, or on one of them: pinning is not what is tested.
Topology topology_of(unsigned count) {
  Topology topology;
  for (unsigned i = 0; i < count; ++i) {
    Cpu cpu;
    cpu.id = static_cast<int>(i);
    topology.cpus.push_back(cpu);
  }
  return topology;
}

std::unique_ptr<WorkerPool> pool_of(const Topology& topology, const StopPage& stop, Bytes bytes,
                                    const KernelFunctions& functions) {
  WorkerPool::Options options;
  options.buffer_bytes = bytes;
  options.threads_max = static_cast<unsigned>(topology.cpus.size());
  options.functions = &functions;
  auto pool = WorkerPool::create(options, topology, stop);
  REQUIRE(pool.ok());
  return std::move(pool).value();
}

// A kernel that reads nothing and records what it was given.
std::atomic<std::uint64_t> seen_words{0};
std::uint64_t counting(std::uint64_t*, std::size_t, std::size_t count) {
  seen_words.fetch_add(count);
  return 0;
}
std::set<std::uint64_t> first_words;
std::uint64_t collecting(std::uint64_t* base, std::size_t, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 512) first_words.insert(base[i]);
  return 0;
}

KernelFunctions all(KernelFunction function) {
  KernelFunctions functions;
  functions.fill(function);
  return functions;
}

// Page faults so far, of this thread and of the process, and the number of threads.
struct Usage {
  Usage() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    faults_of_process = usage.ru_minflt;
    getrusage(RUSAGE_THREAD, &usage);
    faults_of_thread = usage.ru_minflt;
    threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  }
  long faults_of_process = 0;
  long faults_of_thread = 0;
  std::ptrdiff_t threads = 0;
};

}  // namespace

TEST_CASE("a repetition reads whole passes over the buffer, and lasts at least 20 ms") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  constexpr Bytes kSize = 8 * kMiB;
  for (unsigned threads : {1U, 2U, 3U, 4U}) {
    const Topology topology = topology_of(threads);
    const auto pool = pool_of(topology, *stop, kSize, kernel_functions());
    for (std::size_t kernel = 0; kernel < kKernels.size(); ++kernel) {
      for (unsigned used = 1; used <= threads; ++used) {
        const auto repetition = pool->repeat(kernel, used);
        REQUIRE(repetition.ok());
        CHECK(repetition->bytes > 0);
        CHECK(repetition->bytes % kSize == 0);
        CHECK(repetition->elapsed >= kRepetitionMin);
      }
    }
  }
}

TEST_CASE("the declared bytes are the bytes of the words handed to the kernel") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  const KernelFunctions functions = all(counting);
  const Topology topology = topology_of(3);
  // No multiple of anything: the rest that cannot be shared out evenly is not counted either.
  const auto pool = pool_of(topology, *stop, 3 * kMiB + 12345, functions);
  for (std::size_t kernel = 0; kernel < kKernels.size(); ++kernel) {
    const std::uint64_t words_before = seen_words.load();
    const Bytes moved_before = pool->bytes_moved();
    REQUIRE(pool->repeat(kernel, 3).ok());
    const Bytes moved = pool->bytes_moved() - moved_before;
    CHECK(moved == (seen_words.load() - words_before) * (kKernels[kernel].bytes_read + kKernels[kernel].bytes_written));
  }
}

TEST_CASE("every page is written, and no two are alike") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  const KernelFunctions functions = all(collecting);
  const Topology topology = topology_of(1);
  const auto pool = pool_of(topology, *stop, 4 * kMiB, functions);
  first_words.clear();
  const auto found =
      std::find_if(kKernels.begin(), kKernels.end(), [](const Kernel& kernel) { return kernel.streams == 1; });
  REQUIRE(found != kKernels.end());
  const auto linear = static_cast<std::size_t>(found - kKernels.begin());
  REQUIRE(pool->repeat(linear, 1).ok());
  CHECK(first_words.size() == 4 * kMiB / 4096);
  CHECK(first_words.count(0) == 0);
}

TEST_CASE("D6: workers touch first what they read, and run, before the first repetition") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  constexpr Bytes kSize = 32 * kMiB;
  constexpr long kHugePages = 32 / 2;  // the fewest faults that fill it
  const Topology topology = topology_of(2);
  const Usage before;
  const auto pool = pool_of(topology, *stop, kSize, kernel_functions());
  const Usage filled;
  // The coordinator has touched next to nothing of it: on a machine with several nodes all of it would lie at its own.
  CHECK(filled.faults_of_process - before.faults_of_process >= kHugePages);
  CHECK(filled.faults_of_thread - before.faults_of_thread < (filled.faults_of_process - before.faults_of_process) / 2);
  REQUIRE(pool->repeat(0, 2).ok());
  const Usage repeated;
#ifndef __SANITIZE_THREAD__  // its own memory has faults, too, at the first loads
  CHECK(repeated.faults_of_process - filled.faults_of_process < kHugePages);
#endif
  CHECK(repeated.threads == filled.threads);
  CHECK(filled.threads == before.threads + 2);
}

TEST_CASE("a stop that is already there ends a repetition before its first block") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  const Topology topology = topology_of(2);
  const auto pool = pool_of(topology, *stop, 8 * kMiB, kernel_functions());
  stop->request();
  const auto repetition = pool->repeat(0, 2);
  REQUIRE_FALSE(repetition.ok());
  CHECK(repetition.error().code == ErrorCode::kBusy);
  CHECK(pool->bytes_moved() == 0);
}

TEST_CASE("a stop during a repetition ends it within a block or two of each worker") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  const Topology topology = topology_of(2);
  const auto pool = pool_of(topology, *stop, 16 * kMiB, kernel_functions());
  REQUIRE(pool->repeat(0, 2).ok());
  Bytes at_stop = 0;
  std::thread stopper([&] {
    const Bytes start = pool->bytes_moved();
    while (pool->bytes_moved() < start + 4 * kMiB) std::this_thread::yield();
    stop->request();
    at_stop = pool->bytes_moved();
  });
  Result<Repetition> repetition = Repetition{};
  while (repetition.ok()) repetition = pool->repeat(0, 2);
  stopper.join();
  CHECK(repetition.error().code == ErrorCode::kBusy);
  CHECK(pool->bytes_moved() <= at_stop + 2 * 2 * kBlockBytes);
}

TEST_CASE("an interrupted worker leaves its block, and the pool ends as a stopped one") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  WorkerPool::heed_interrupts();
  // Never ends by itself.
  const KernelFunctions functions = all(+[](std::uint64_t*, std::size_t, std::size_t) -> std::uint64_t {
    for (volatile bool forever = true; forever;) {
#ifdef __SANITIZE_THREAD__
      ::usleep(1);  // that sanitizer hands signals over in calls like this only
#endif
    }
    return 0;
  });
  const Topology topology = topology_of(2);
  const auto pool = pool_of(topology, *stop, 1 * kMiB, functions);
  std::thread stopper([&] {
    while (stop->readers().reading < 2) std::this_thread::yield();
    stop->request();
    stop->interrupt_readers(::getpid(), StopPage::Whom::kOnce);
  });
  const auto repetition = pool->repeat(0, 2);
  stopper.join();
  REQUIRE_FALSE(repetition.ok());
  CHECK(repetition.error().code == ErrorCode::kBusy);
  CHECK(stop->last_load() > MonotonicTime());
}

namespace {

void wait_until_still(const StopPage& stop, MonotonicTime last_load_before) {
  while (stop.last_load() <= last_load_before || stop.someone_reads()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("workers hold still while a packet waits, and go on where it was no request") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  const Knocker door(*stop);
  const Topology topology = topology_of(2);
  const auto pool = pool_of(topology, *stop, 16 * kMiB, kernel_functions());
  REQUIRE(pool->repeat(0, 2).ok());
  const Bytes at_knock = pool->bytes_moved();
  const MonotonicTime last_load = stop->last_load();
  door.knock();
  Bytes at_rest = 0;
  std::thread judge([&] {
    wait_until_still(*stop, last_load);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    at_rest = pool->bytes_moved();
    door.judge();
  });
  const auto counted = pool->repeat(0, 2);
  judge.join();
  CHECK(at_rest == at_knock);
  REQUIRE(counted.ok());
  CHECK(counted->bytes >= 16 * kMiB);
  // The one that was held up is not the one that counts.
  CHECK(pool->bytes_moved() > at_knock + counted->bytes);
}

namespace {

std::atomic<unsigned> stuck_calls{0};
std::atomic<bool> stuck_knocked{false};
// The first block never ends by itself, the others at the knock.
std::uint64_t first_is_stuck(std::uint64_t*, std::size_t, std::size_t) {
  const bool first = stuck_calls.fetch_add(1) == 0;
  while (first || !stuck_knocked) ::usleep(200);
  return 0;
}

}  // namespace

TEST_CASE("a worker that cannot look at a knock is interrupted by one that can") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  WorkerPool::heed_interrupts();
  const Knocker door(*stop);
  const KernelFunctions functions = all(first_is_stuck);
  const Topology topology = topology_of(2);
  const auto pool = pool_of(topology, *stop, 16 * kMiB, functions);
  const MonotonicTime last_load = stop->last_load();
  std::thread judge([&] {
    while (stuck_calls < 2) std::this_thread::yield();
    door.knock();
    stuck_knocked = true;
    wait_until_still(*stop, last_load);
    door.judge();
  });
  const auto counted = pool->repeat(0, 2);
  judge.join();
  REQUIRE(counted.ok());
  CHECK(counted->bytes % (16 * kMiB) == 0);  // none but whole passes: the one that was interrupted does not count
}

TEST_CASE("a request that is judged while workers hold still ends them where they are") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  const Knocker door(*stop);
  const Topology topology = topology_of(2);
  const auto pool = pool_of(topology, *stop, 16 * kMiB, kernel_functions());
  const MonotonicTime last_load = stop->last_load();
  door.knock();
  std::thread judge([&] {
    wait_until_still(*stop, last_load);
    stop->request();
  });
  const auto repetition = pool->repeat(0, 2);
  judge.join();
  REQUIRE_FALSE(repetition.ok());
  CHECK(repetition.error().code == ErrorCode::kBusy);
  CHECK(pool->bytes_moved() == 0);
  CHECK_FALSE(stop->someone_reads());
}

TEST_CASE("the page is left with nobody reading and the time of the last load") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  const Topology topology = topology_of(2);
  const auto pool = pool_of(topology, *stop, 8 * kMiB, kernel_functions());
  CHECK_FALSE(stop->someone_reads());
  const MonotonicTime filled = stop->last_load();
  CHECK(filled > MonotonicTime());
  REQUIRE(pool->repeat(0, 2).ok());
  CHECK_FALSE(stop->someone_reads());
  CHECK(stop->last_load() >= filled + kRepetitionMin);
}

TEST_CASE("a stop during the filling is an error of the pool") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  stop->request();
  const Topology topology = topology_of(1);
  WorkerPool::Options options;
  options.buffer_bytes = 1 * kMiB;
  options.functions = &kernel_functions();
  CHECK(WorkerPool::create(options, topology, *stop).error().code == ErrorCode::kBusy);
}

TEST_CASE("a buffer too small for its workers is refused") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  const Topology topology = topology_of(8);
  WorkerPool::Options options;
  options.buffer_bytes = 64 * kKiB;
  options.threads_max = 8;
  options.functions = &kernel_functions();
  CHECK(WorkerPool::create(options, topology, *stop).error().code == ErrorCode::kInvalid);
}

TEST_CASE("a node alone reads its own part of the buffer") {
  auto stop = StopPage::create();
  REQUIRE(stop.ok());
  Topology topology = topology_of(3);
  topology.cpus[2].node = 1;
  const KernelFunctions functions = all(counting);
  const auto pool = pool_of(topology, *stop, 3 * kMiB, functions);
  CHECK(pool->workers_on(0) == 2);
  CHECK(pool->workers_on(1) == 1);
  CHECK(pool->workers_on(7) == 0);
  const auto both = pool->repeat(0, 3);
  const auto first = pool->repeat_on(0, 0, 2);
  const auto second = pool->repeat_on(1, 0, 1);
  REQUIRE(both.ok());
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(both->bytes % (3 * kMiB) == 0);
  CHECK(first->bytes % (2 * kMiB) == 0);
  CHECK(second->bytes % kMiB == 0);
}
