#include "collectors/ceiling/measure.h"

#include "collectors/ceiling/caches.h"
#include "collectors/ceiling/conditions.h"
#include "collectors/ceiling/kernels.h"
#include "collectors/ceiling/system_files.h"
#include "collectors/ceiling/topology.h"
#include "collectors/ceiling/verdict.h"
#include "collectors/ceiling/worker_pool.h"
#include "collectors/ceiling/working_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

namespace rooflined::ceiling {
namespace {

// Free blocks are taken by others too between the look and the filling.
constexpr Bytes kHugeShareNumerator = 9;
constexpr Bytes kHugeShareDenominator = 10;

Error reclaimed() {
  return Error{ErrorCode::kLimit, "reclaim", "the kernel reclaimed or compacted memory during the run"};
}

// The pool, and a look at the reclaim counters before every repetition: a probe never costs anyone pages.
class WatchedSource : public RepetitionSource {
 public:
  WatchedSource(RepetitionSource& inner, const std::string& root, std::uint64_t reclaim_events)
      : inner_(inner), root_(root), reclaim_events_(reclaim_events) {}

  Result<Repetition> repeat(std::size_t kernel, unsigned threads) override {
    if (const Status status = look(); !status.ok()) return status.error();
    return inner_.repeat(kernel, threads);
  }
  Status look() const {
    if (read_reclaim_events(root_) != reclaim_events_) return reclaimed();
    return ok_status();
  }

 private:
  RepetitionSource& inner_;
  const std::string& root_;
  const std::uint64_t reclaim_events_;
};

MeasuredCell named(Cell cell) {
  MeasuredCell named;
  named.kernel = kKernels[cell.kernel].name;
  named.threads = cell.threads;
  named.best = cell.best;
  named.median = cell.median;
  named.stable = cell.stable;
  named.samples = std::move(cell.samples);
  return named;
}

Result<std::vector<unsigned>> chosen_counts(const Options& options, const Topology& topology) {
  if (options.thread_counts.empty()) return thread_counts(topology);
  std::vector<unsigned> counts = options.thread_counts;
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.front() < 1 || counts.back() > topology.cpus.size()) {
    return Error{ErrorCode::kInvalid, "threads",
                 fmt::format("{} asked for, 1 to {} can be placed on this machine's usable CPUs",
                             counts.front() < 1 ? counts.front() : counts.back(), topology.cpus.size())};
  }
  return counts;
}

// What the kernel made of the buffer: nothing else in this process is large.
struct Resident {
  std::optional<Bytes> all;
  Bytes huge = 0;
};
Resident read_resident(const std::string& root) {
  const std::string text = read_system_file(root, "/proc/self/smaps_rollup").value_or("");
  Resident resident;
  if (const auto kilobytes = value_of_line(text, "Rss")) resident.all = *kilobytes * kKiB;
  resident.huge = value_of_line(text, "AnonHugePages").value_or(0) * kKiB;
  return resident;
}

// Nothing where this binary or this machine cannot run that cell.
std::optional<SweepStart> find_start(const StartFrom& from, const SweepOptions& sweep) {
  if (from.threads < 1 || from.threads > sweep.thread_counts.back()) return std::nullopt;
  for (const std::size_t kernel : sweep.kernels) {
    if (kKernels[kernel].name == from.kernel) return SweepStart{kernel, from.threads, from.alone};
  }
  return std::nullopt;
}

SweepOptions sweep_options(const Options& options, std::vector<unsigned> counts) {
  SweepOptions sweep;
  for (std::size_t i = 0; i < kKernels.size(); ++i) {
    if (kKernels[i].counts) sweep.kernels.push_back(i);
  }
  sweep.thread_counts = std::move(counts);
  sweep.repetitions = std::max(options.repetitions, kRepetitionsMin);
  sweep.confirmations = std::max(options.confirmations, sweep.repetitions);
  sweep.budget = options.sweep_budget * sweep.repetitions / kRepetitionsMin;
  if (options.start_from) sweep.start = find_start(*options.start_from, sweep);
  return sweep;
}

// Fills in the cells, the winner and the copy.
Status sweep_and_copy(const SweepOptions& choice, RepetitionSource& source, const ProgressCallback& progress,
                      Measurement& result) {
  auto sweep = run_sweep(choice, source, progress);
  if (!sweep.ok()) return sweep.error();
  for (Cell& cell : sweep->cells) result.cells.push_back(named(std::move(cell)));
  if (!choice.start || !choice.start->alone) {
    const unsigned threads = sweep->confirmation ? sweep->confirmation->threads : choice.thread_counts.back();
    auto copied = run_cell(kCopyKernel, threads, choice.repetitions, source, progress);
    if (!copied.ok()) return copied.error();
    result.copy = copied->best;
    result.cells.push_back(named(std::move(copied).value()));
  }
  if (sweep->confirmation) result.winner = named(std::move(*sweep->confirmation));
  if (sweep->kernels_left_out > 0) {
    result.warnings.push_back(fmt::format("{} of {} kernels left out to keep the time limit", sweep->kernels_left_out,
                                          choice.kernels.size()));
  }
  if (sweep->repetitions_discarded > 0) {
    result.warnings.push_back(
        fmt::format("{} repetitions discarded: the clock stood still", sweep->repetitions_discarded));
  }
  return ok_status();
}

// One node of the pool as a source of repetitions.
class NodeSource : public RepetitionSource {
 public:
  NodeSource(WorkerPool& pool, WatchedSource& watch, int node) : pool_(pool), watch_(watch), node_(node) {}

  Result<Repetition> repeat(std::size_t kernel, unsigned threads) override {
    if (const Status status = watch_.look(); !status.ok()) return status.error();
    return pool_.repeat_on(node_, kernel, threads);
  }

 private:
  WorkerPool& pool_;
  WatchedSource& watch_;
  int node_;
};

// The winner's kernel on each node whose memory was read, alone. A node of CPUs without memory has no figure: what its
// workers filled lies elsewhere.
Status measure_nodes(const SweepOptions& choice, const Topology& topology, WorkerPool& pool, WatchedSource& watch,
                     Measurement& result) {
  std::set<int> nodes;
  for (const Cpu& cpu : topology.cpus) {
    const auto& with_memory = topology.memory_nodes;
    const bool memory =
        with_memory.empty() || std::find(with_memory.begin(), with_memory.end(), cpu.node) != with_memory.end();
    if (memory && pool.workers_on(cpu.node) > 0) nodes.insert(cpu.node);
  }
  if (nodes.size() < 2) return ok_status();
  const auto kernel = std::find_if(kKernels.begin(), kKernels.end(),
                                   [&](const Kernel& one) { return one.name == result.winner->kernel; });
  for (const int node : nodes) {
    NodeSource source(pool, watch, node);
    const unsigned threads = std::min(result.winner->threads, pool.workers_on(node));
    const auto cell =
        run_cell(static_cast<std::size_t>(kernel - kKernels.begin()), threads, choice.repetitions, source, nullptr);
    if (!cell.ok()) return cell.error();
    result.nodes.push_back({node, cell->best, cell->median, cell->stable});
  }
  return ok_status();
}

}  // namespace

Result<Measurement> measure(const Options& options, const StopPage& stop, const ProgressCallback& progress) {
  const auto started = std::chrono::steady_clock::now();
  Topology topology = read_topology(options.root, options.affinity);
  if (!keep_nodes(topology, options.numa_nodes)) {
    return Error{ErrorCode::kInvalid, "numa nodes", "this process may use no CPU of them"};
  }
  auto counts = chosen_counts(options, topology);
  if (!counts.ok()) return counts.error();
  Evidence evidence;
  evidence.threads_max = counts->back();
  Measurement result;
  result.llc = read_llc_bytes(options.root);
  MemoryFacts memory = read_memory_facts(options.root);
  limit_to_nodes(memory, options.root, topology);
  const auto working_set = plan_working_set(memory, result.llc, options.working_set);
  if (!working_set.ok()) return working_set.error();
  result.working_set = working_set->size;
  result.cache_inflated = working_set->cache_inflated;

  evidence.before = read_conditions(options.root);
  WorkerPool::Options pool_options;
  pool_options.buffer_bytes = working_set->size;
  pool_options.huge_bytes =
      std::min(working_set->size, memory.free_in_huge_pages / kHugeShareDenominator * kHugeShareNumerator);
  pool_options.threads_max = evidence.threads_max;
  pool_options.functions = &kernel_functions();
  result.instruction_set = instruction_sets().front();
  const auto pool = WorkerPool::create(pool_options, topology, stop);
  if (!pool.ok()) return pool.error();
  evidence.unpinned = (*pool)->unpinned();
  const Resident resident = read_resident(options.root);
  if (resident.all && *resident.all < working_set->size) {
    return Error{ErrorCode::kLimit, "memory", "the filled buffer is not resident: pages were swapped out or merged"};
  }
  result.huge_page_bytes = std::min(resident.huge, working_set->size);

  const SweepOptions choice = sweep_options(options, std::move(counts).value());
  result.repetitions = choice.repetitions;
  WatchedSource source(**pool, options.root, evidence.before.reclaim_events);
  if (Status status = sweep_and_copy(choice, source, progress, result); !status.ok()) return status.error();
  evidence.threads = result.winner ? result.winner->threads : evidence.threads_max;
  evidence.confirmed = result.stable();
  if (result.winner) {
    if (Status status = measure_nodes(choice, topology, **pool, source, result); !status.ok()) return status.error();
  }

  evidence.held_share = (*pool)->held_share();
  evidence.seen = surroundings_between(evidence.before, read_conditions(options.root));
  if (evidence.seen.reclaim_events > 0) return reclaimed();
  result.surroundings = evidence.seen;
  result.verdict = judge(result, topology, evidence);
  for (std::string& warning : warnings_of(result, topology, evidence)) result.warnings.push_back(std::move(warning));
  if (options.start_from && !choice.start) {
    result.warnings.push_back(fmt::format("{} with {} threads cannot be run here: the whole sweep was made",
                                          options.start_from->kernel, options.start_from->threads));
  }
  result.duration_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

}  // namespace rooflined::ceiling
