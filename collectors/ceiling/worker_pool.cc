#include "collectors/ceiling/worker_pool.h"

#include "collectors/ceiling/buffer_range.h"
#include "collectors/ceiling/probe_process.h"

#include <sched.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <system_error>
#include <thread>

namespace rooflined::ceiling {
namespace {

constexpr std::uint64_t kPassesMax = 1U << 20U;
constexpr Duration kKnockLook = std::chrono::microseconds(100);
// In a row. Packets that are no requests and come more often than that are a load of their own.
constexpr unsigned kHeldUpMax = 4;

MonotonicTime now() {
  return MonotonicTime(std::chrono::steady_clock::now().time_since_epoch());
}

// Frees the CPU now and then: at idle priority, or with more workers than CPUs, the one that is waited for needs it.
void wait_a_little(unsigned& spins) {
  if (++spins % 256 == 0) std::this_thread::yield();
}

// Where kInterruptSignal brings a worker that is in its block: out of it. Nothing in there holds anything that would
// have to be given back.
thread_local sigjmp_buf block_end;
thread_local volatile std::sig_atomic_t in_block = 0;

void leave_block(int) {
  if (in_block == 0) return;
  in_block = 0;
  siglongjmp(block_end, 1);
}

enum class Job { kFill, kKernel, kQuit };

// One worker's own lines: what it was told, and what it has to tell.
struct alignas(128) Slot {
  std::thread thread;
  int cpu = 0;
  int node = 0;
  bool pinned = false;
  pid_t thread_number = 0;

  std::atomic<std::uint32_t> order{0};  // counts up; a new number is a new job
  Job job = Job::kQuit;
  Range* range = nullptr;
  std::size_t kernel = 0;
  std::uint64_t passes = 0;

  MonotonicTime start;
  MonotonicTime end;
  Bytes bytes = 0;
  bool stopped = false;
  MonotonicTime ran_at;     // the last that this thread knows of
  MonotonicTime looked_at;  // for a knock
  bool held_up = false;     // by one
  Duration held{0};         // for so long
  std::atomic<Bytes> moved{0};

  std::size_t place() const { return static_cast<std::size_t>(cpu); }
};

}  // namespace

struct WorkerPool::Shared {
  Shared(const Topology& topology_in, const StopPage& stop_in) : topology(topology_in), stop(stop_in) {}

  const Topology& topology;
  const StopPage& stop;
  const KernelFunctions* functions = nullptr;
  std::uint64_t* buffer = nullptr;
  Bytes mapped_bytes = 0;
  std::vector<std::unique_ptr<Range>> ranges;
  std::vector<std::unique_ptr<Slot>> slots;
  std::map<std::vector<int>, std::uint64_t> passes;  // by the CPUs of the workers: how many last 20 ms
  double held_share = 0;                             // of the repetition that was held up most and counts

  std::atomic<unsigned> expected{0};
  std::atomic<unsigned> arrived{0};
  std::atomic<unsigned> finished{0};

  void work(Slot& slot);
  void fill(Slot& slot) const;
  void read(Slot& slot) const;
  bool knocked(Slot& slot) const;
  bool may_load(Slot& slot) const;
  void enter(const Slot& slot) const;
  void hold_still(Slot& slot) const;
  bool goes_on_after_interrupt(Slot& slot) const;
  void cut_ranges(std::size_t units);
  void run(Job job, std::size_t kernel, const std::vector<int>& cpus, std::uint64_t pass_count);
  Result<Repetition> repeat(std::size_t kernel, const std::vector<int>& cpus);
};

void WorkerPool::Shared::work(Slot& slot) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (slot.cpu < CPU_SETSIZE) {
    CPU_SET(static_cast<std::size_t>(slot.cpu), &mask);
    slot.pinned = sched_setaffinity(0, sizeof mask, &mask) == 0;
  }
  slot.thread_number = ::gettid();
  std::uint32_t seen = 0;
  for (;;) {
    slot.order.wait(seen, std::memory_order_acquire);
    seen = slot.order.load(std::memory_order_acquire);
    if (slot.job == Job::kQuit) return;
    arrived.fetch_add(1, std::memory_order_acq_rel);
    unsigned spins = 0;
    while (arrived.load(std::memory_order_acquire) < expected.load(std::memory_order_relaxed)) wait_a_little(spins);
    slot.looked_at = MonotonicTime();
    slot.stopped = false;
    slot.held_up = false;
    slot.held = Duration(0);
    slot.bytes = 0;
    slot.ran_at = slot.start = now();
    if (sigsetjmp(block_end, 1) == 0 || goes_on_after_interrupt(slot)) {
      enter(slot);
      if (slot.job == Job::kFill) {
        fill(slot);
      } else {
        read(slot);
      }
      in_block = 0;
      stop.end_reading(slot.place(), now());
    }
    slot.end = now();
    finished.fetch_add(1, std::memory_order_acq_rel);
    finished.notify_one();
  }
}

// By the clock, not by blocks: who did not have a CPU for a while looks first. Both together cost half a percent.
bool WorkerPool::Shared::knocked(Slot& slot) const {
  slot.ran_at = now();
  if (slot.ran_at - slot.looked_at < kKnockLook) return false;
  slot.looked_at = slot.ran_at;
  return stop.knocked();
}

// In this order: who shows on the page can be interrupted.
void WorkerPool::Shared::enter(const Slot& slot) const {
  in_block = 1;
  stop.begin_reading(slot.place(), slot.thread_number);
}

// Asleep: whoever judges the packet may need this CPU.
void WorkerPool::Shared::hold_still(Slot& slot) const {
  const MonotonicTime since = now();
  slot.held_up = true;
  while (!stop.requested() && stop.knocked()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  slot.held += now() - since;
}

// Before every block: false, and the slot is stopped, when there is to be none any more.
bool WorkerPool::Shared::may_load(Slot& slot) const {
  if (stop.heeds() && knocked(slot)) {
    in_block = 0;
    stop.end_reading(slot.place(), now());
    stop.interrupt_readers(::getpid(), StopPage::Whom::kOnce);
    hold_still(slot);
    enter(slot);
  }
  slot.stopped = stop.requested();
  return !slot.stopped;
}

// The rest of its piece is left out: a repetition that was held up is repeated. Only a stop interrupts the filling.
bool WorkerPool::Shared::goes_on_after_interrupt(Slot& slot) const {
  // Now, where it had a CPU, and where it had none, in its last block or when it was interrupted.
  stop.end_reading(slot.place(), std::max(slot.ran_at, std::min(now(), stop.interrupted_at() + kAnswerTime)));
  if (slot.job == Job::kKernel) hold_still(slot);
  slot.stopped = slot.job == Job::kFill || stop.requested();
  return !slot.stopped;
}

void WorkerPool::Shared::fill(Slot& slot) const {
  constexpr std::size_t kBlockWords = kBlockBytes / sizeof(std::uint64_t);
  for (Piece piece = take_piece(*slot.range, 1); piece.count > 0; piece = take_piece(*slot.range, 1)) {
    const auto place = static_cast<std::uint64_t>(piece.words - buffer);
    for (std::size_t begin = 0; begin < piece.count; begin += kBlockWords) {
      if (!may_load(slot)) return;
      const std::size_t end = std::min(begin + kBlockWords, piece.count);
      for (std::size_t i = begin; i < end; ++i) piece.words[i] = random_word(place + i);
    }
  }
}

void WorkerPool::Shared::read(Slot& slot) const {
  const Kernel& kernel = kKernels[slot.kernel];
  const KernelFunction function = (*functions)[slot.kernel];
  const std::size_t block = kBlockBytes / sizeof(std::uint64_t) / kernel.streams;
  const Bytes element = kernel.bytes_read + kernel.bytes_written;
  while (!slot.stopped) {
    const Piece piece = take_piece(*slot.range, slot.passes);
    if (piece.count == 0) break;
    const std::size_t stride = piece.count / kernel.streams;
    for (std::size_t at = 0; at < stride; at += block) {
      if (!may_load(slot)) break;
      const std::size_t count = std::min(block, stride - at);
      function(piece.words + at, stride, count);
      slot.bytes += count * element;
      slot.moved.fetch_add(count * element, std::memory_order_relaxed);
    }
  }
}

// Every node's share of the buffer is its share of the workers.
void WorkerPool::Shared::cut_ranges(std::size_t units) {
  std::size_t workers_before = 0;
  for (const auto& slot : slots) {  // placement() keeps those of a node together
    if (ranges.empty() || ranges.back()->node != slot->node) {
      ranges.push_back(std::make_unique<Range>());
      ranges.back()->node = slot->node;
      ranges.back()->words = buffer + units * workers_before / slots.size() * kUnitWords;
    }
    ++workers_before;
    Range& range = *ranges.back();
    const auto first = static_cast<std::size_t>(range.words - buffer) / kUnitWords;
    range.units = units * workers_before / slots.size() - first;
    slot->range = &range;
  }
  for (const auto& range : ranges) {
    const auto workers = static_cast<std::size_t>(
        std::count_if(slots.begin(), slots.end(), [&](const auto& slot) { return slot->range == range.get(); }));
    range->piece_units = std::clamp(range->units / (workers * kPiecesPerWorker), std::size_t{1}, kPieceUnits);
  }
}

void WorkerPool::Shared::run(Job job, std::size_t kernel, const std::vector<int>& cpus, std::uint64_t pass_count) {
  const auto threads = static_cast<unsigned>(cpus.size());
  expected.store(threads, std::memory_order_relaxed);
  arrived.store(0, std::memory_order_relaxed);
  finished.store(0, std::memory_order_relaxed);
  for (const auto& range : ranges) range->taken.store(0, std::memory_order_relaxed);
  for (const auto& slot : slots) {
    if (std::find(cpus.begin(), cpus.end(), slot->cpu) == cpus.end()) continue;
    slot->job = job;
    slot->kernel = kernel;
    slot->passes = pass_count;
    slot->order.fetch_add(1, std::memory_order_release);
    slot->order.notify_one();
  }
  for (unsigned done = 0; (done = finished.load(std::memory_order_acquire)) < threads;) {
    finished.wait(done, std::memory_order_acquire);
  }
}

WorkerPool::WorkerPool(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

WorkerPool::~WorkerPool() {
  for (const auto& slot : shared_->slots) {
    if (!slot->thread.joinable()) continue;
    slot->job = Job::kQuit;
    slot->order.fetch_add(1, std::memory_order_release);
    slot->order.notify_one();
    slot->thread.join();
  }
  if (shared_->buffer != nullptr) give_back(shared_->buffer, shared_->mapped_bytes);
}

void WorkerPool::heed_interrupts() {
  struct sigaction action {};
  action.sa_handler = leave_block;
  sigemptyset(&action.sa_mask);
  ::sigaction(kInterruptSignal, &action, nullptr);
}

Result<std::unique_ptr<WorkerPool>> WorkerPool::create(const Options& options, const Topology& topology,
                                                       const StopPage& stop) {
  ROOFLINED_CHECK(options.threads_max >= 1 && options.threads_max <= topology.cpus.size());
  ROOFLINED_CHECK(options.functions != nullptr);
  std::unique_ptr<WorkerPool> pool(new WorkerPool(std::make_unique<Shared>(topology, stop)));
  Shared& shared = *pool->shared_;
  shared.functions = options.functions;
  const std::size_t units = options.buffer_bytes / kUnitBytes;
  if (units < options.threads_max) {
    return Error{ErrorCode::kInvalid, "size", "at least " + std::to_string(kUnitBytes) + " bytes a thread are needed"};
  }
  void* const memory =
      ::mmap(nullptr, options.buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return Error{ErrorCode::kIo, "mmap", std::strerror(errno)};
  shared.buffer = static_cast<std::uint64_t*>(memory);
  shared.mapped_bytes = options.buffer_bytes;
  // Advice that the kernel may not know: the measurement is right without it.
  if (options.huge_bytes > 0) ::madvise(memory, std::min(options.huge_bytes, options.buffer_bytes), MADV_HUGEPAGE);
  ::madvise(memory, options.buffer_bytes, MADV_DONTDUMP);

  const std::vector<int> cpus = placement(topology, options.threads_max);
  for (const int cpu : cpus) {
    auto slot = std::make_unique<Slot>();
    slot->cpu = cpu;
    slot->node =
        std::find_if(topology.cpus.begin(), topology.cpus.end(), [cpu](const Cpu& one) { return one.id == cpu; })->node;
    shared.slots.push_back(std::move(slot));
  }
  shared.cut_ranges(units);
  try {
    for (const auto& slot : shared.slots) {
      slot->thread = std::thread([&shared, &mine = *slot] { shared.work(mine); });
    }
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kIo, "threads", error.what()};
  }
  // One worker at a time, so that a request that comes meanwhile finds the other CPUs free: where a virtual machine's
  // host has yet to find the memory, a huge page takes up to 10 ms to clear, and 2 % of wake-ups on that CPU 1 to 4 ms.
  for (const auto& range : shared.ranges) {
    const auto filler = std::find_if(shared.slots.begin(), shared.slots.end(),
                                     [&](const auto& slot) { return slot->range == range.get(); });
    shared.run(Job::kFill, 0, {(*filler)->cpu}, 1);
  }
  for (const auto& slot : shared.slots) {
    if (slot->stopped) return Error{ErrorCode::kBusy, "stopped", "while the buffer was filled"};
  }
  return pool;
}

Result<Repetition> WorkerPool::Shared::repeat(std::size_t kernel, const std::vector<int>& cpus) {
  std::uint64_t& pass_count = passes.try_emplace(cpus, 1).first->second;
  for (unsigned held_up = 0;;) {
    run(Job::kKernel, kernel, cpus, pass_count);
    Repetition repetition;
    MonotonicTime start = MonotonicTime::max();
    MonotonicTime end = MonotonicTime::min();
    bool held_now = false;
    Duration held(0);
    for (const auto& slot : slots) {
      if (std::find(cpus.begin(), cpus.end(), slot->cpu) == cpus.end()) continue;
      if (slot->stopped) return Error{ErrorCode::kBusy, "stopped", "while memory was read"};
      start = std::min(start, slot->start);
      end = std::max(end, slot->end);
      repetition.bytes += slot->bytes;
      held_now = held_now || slot->held_up;
      held += slot->held;
    }
    held_up = held_now ? held_up + 1 : 0;
    if (held_now && held_up <= kHeldUpMax) continue;
    repetition.elapsed = end - start;
    if (repetition.elapsed >= kRepetitionMin || pass_count >= kPassesMax) {
      held_share = std::max(held_share, to_seconds(held) / to_seconds(repetition.elapsed * cpus.size()));
      return repetition;
    }
    // A quarter more than needed, so that the next ones of these workers last long enough at once.
    const double factor =
        repetition.elapsed > Duration(0) ? 1.25 * to_seconds(kRepetitionMin) / to_seconds(repetition.elapsed) : 8;
    pass_count = std::clamp(static_cast<std::uint64_t>(static_cast<double>(pass_count) * factor) + 1, pass_count + 1,
                            kPassesMax);
  }
}

Result<Repetition> WorkerPool::repeat(std::size_t kernel, unsigned threads) {
  ROOFLINED_CHECK(kernel < kKernels.size() && threads >= 1 && threads <= shared_->slots.size());
  return shared_->repeat(kernel, placement(shared_->topology, threads));
}

Result<Repetition> WorkerPool::repeat_on(int node, std::size_t kernel, unsigned threads) {
  ROOFLINED_CHECK(kernel < kKernels.size() && threads >= 1 && threads <= workers_on(node));
  Topology alone = shared_->topology;
  keep_nodes(alone, {node});
  return shared_->repeat(kernel, placement(alone, threads));
}

unsigned WorkerPool::workers_on(int node) const {
  return static_cast<unsigned>(std::count_if(shared_->slots.begin(), shared_->slots.end(),
                                             [node](const auto& slot) { return slot->node == node; }));
}

unsigned WorkerPool::unpinned() const {
  return static_cast<unsigned>(
      std::count_if(shared_->slots.begin(), shared_->slots.end(), [](const auto& slot) { return !slot->pinned; }));
}

double WorkerPool::held_share() const {
  return shared_->held_share;
}

Bytes WorkerPool::bytes_moved() const {
  Bytes total = 0;
  for (const auto& slot : shared_->slots) total += slot->moved.load(std::memory_order_relaxed);
  return total;
}

}  // namespace rooflined::ceiling
