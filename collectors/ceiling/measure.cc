#include "collectors/ceiling/measure.h"

#include "collectors/ceiling/caches.h"
#include "collectors/ceiling/conditions.h"
#include "collectors/ceiling/kernels.h"
#include "collectors/ceiling/system_files.h"
#include "collectors/ceiling/topology.h"
#include "collectors/ceiling/worker_pool.h"
#include "collectors/ceiling/working_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace rooflined::ceiling {
namespace {

// Of the time that our workers wanted to run, what the host may take: the stability rule forgives a quarter, so a fifth
// all along would pass it unseen.
constexpr double kStealMax = 0.20;
constexpr double kStealWarning = 0.05;
// What others may use of the CPUs: a twentieth, and a quarter of a CPU on a small machine. One CPU that streams takes a
// tenth of the memory's rate of a large machine, all of it on a small one.
constexpr double kOthersShareMax = 0.05;
constexpr double kOthersCpusMax = 0.25;
// Our workers wait for nobody on a quiet machine; 2 % were seen there.
constexpr double kCpuPressureShareMax = 0.3;
// Free blocks are taken by others too between the look and the filling.
constexpr Bytes kHugeShareNumerator = 9;
constexpr Bytes kHugeShareDenominator = 10;
constexpr double kCpuPressureWarning = 20;

Error reclaimed() {
  return Error{ErrorCode::kLimit, "reclaim", "the kernel reclaimed or compacted memory during the run"};
}

// The pool, and a look at the reclaim counters before every repetition: a probe never costs anyone pages.
class WatchedSource : public RepetitionSource {
 public:
  WatchedSource(RepetitionSource& inner, const std::string& root, std::uint64_t reclaim_events)
      : inner_(inner), root_(root), reclaim_events_(reclaim_events) {}

  Result<Repetition> repeat(std::size_t kernel, unsigned threads) override {
    if (read_reclaim_events(root_) != reclaim_events_) {
      return reclaimed();
    }
    return inner_.repeat(kernel, threads);
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

bool busy_with_others(const Surroundings& seen, const Topology& topology) {
  const double others_max = std::max(kOthersCpusMax, kOthersShareMax * static_cast<double>(topology.cpus.size()));
  return seen.others_cpus > others_max || seen.cpu_pressure_share.value_or(0) > kCpuPressureShareMax;
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

void warn_about_surroundings(const Topology& topology, const Conditions& before, std::optional<Bytes> llc,
                             unsigned threads_max, unsigned unpinned, std::vector<std::string>& warnings) {
  if (!llc) warnings.push_back("no cache size known: neither the system nor the processor reports one");
  if (topology.throttled()) {
    warnings.push_back(fmt::format("throttled: the cgroup's quota is {:.2f} of a CPU", *topology.quota_cpus));
  } else if (topology.quota_cpus && *topology.quota_cpus < threads_max) {
    warnings.push_back(
        fmt::format("throttled: {} threads on a cgroup quota of {:.2f} CPUs", threads_max, *topology.quota_cpus));
  } else if (topology.threads_max() < topology.cpus.size()) {
    warnings.push_back(
        fmt::format("the cgroup's quota allows {} of {} CPUs", topology.threads_max(), topology.cpus.size()));
  }
  if (unpinned > 0) warnings.push_back(fmt::format("{} workers could not be pinned to their CPU", unpinned));
  if (before.load1 > static_cast<double>(topology.cpus.size())) {
    warnings.push_back(
        fmt::format("busy machine: load {:.1f} on {} CPUs before the run", before.load1, topology.cpus.size()));
  }
  if (before.cpu_pressure_avg10 > kCpuPressureWarning) {
    warnings.push_back(fmt::format("busy machine: tasks waited for a CPU {:.0f} % of the 10 s before the run",
                                   before.cpu_pressure_avg10));
  }
}

void warn_about_run(const Surroundings& seen, const Topology& topology, std::vector<std::string>& warnings) {
  if (seen.steal_share > kStealWarning) {
    warnings.push_back(fmt::format("contended: the host took {:.0f} % of the CPU time away", 100 * seen.steal_share));
  }
  if (busy_with_others(seen, topology)) {
    warnings.push_back(
        fmt::format("contended: others kept {:.1f} CPUs busy meanwhile; some task waited for a CPU "
                    "{:.0f} % of the time",
                    seen.others_cpus, 100 * seen.cpu_pressure_share.value_or(0)));
  }
  if (seen.throttled_periods > 0) {
    warnings.push_back(
        fmt::format("throttled: the cgroup's quota stopped the workers {} times", seen.throttled_periods));
  }
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

Verdict judge(const Sweep& sweep, const Topology& topology, unsigned threads, const Surroundings& seen) {
  if (topology.quota_cpus && *topology.quota_cpus < static_cast<double>(threads)) return Verdict::kThrottled;
  if (seen.throttled_periods > 0) return Verdict::kThrottled;
  if (seen.steal_share >= kStealMax || busy_with_others(seen, topology)) return Verdict::kContended;
  return sweep.confirmed() ? Verdict::kConfirmed : Verdict::kUnstable;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kConfirmed:
      return "confirmed";
    case Verdict::kUnstable:
      return "unstable";
    case Verdict::kThrottled:
      return "throttled";
    case Verdict::kContended:
      return "contended";
  }
  return "unstable";
}

Result<Measurement> measure(const Options& options, const StopPage& stop, const ProgressCallback& progress) {
  const auto started = std::chrono::steady_clock::now();
  Topology topology = read_topology(options.root, options.affinity);
  if (!keep_nodes(topology, options.numa_nodes)) {
    return Error{ErrorCode::kInvalid, "numa nodes", "this process may use no CPU of them"};
  }
  auto counts = chosen_counts(options, topology);
  if (!counts.ok()) return counts.error();
  const unsigned threads_max = counts->back();
  Measurement result;
  result.llc = read_llc_bytes(options.root);
  const MemoryFacts memory = read_memory_facts(options.root);
  const auto working_set = plan_working_set(memory, result.llc, options.working_set);
  if (!working_set.ok()) return working_set.error();
  result.working_set = working_set->size;
  result.cache_inflated = working_set->cache_inflated;

  const Conditions before = read_conditions(options.root);
  WorkerPool::Options pool_options;
  pool_options.buffer_bytes = working_set->size;
  pool_options.huge_bytes =
      std::min(working_set->size, memory.free_in_huge_pages / kHugeShareDenominator * kHugeShareNumerator);
  pool_options.threads_max = threads_max;
  pool_options.functions = &kernel_functions();
  result.instruction_set = instruction_sets().front();
  const auto pool = WorkerPool::create(pool_options, topology, stop);
  if (!pool.ok()) return pool.error();
  const Resident resident = read_resident(options.root);
  if (resident.all && *resident.all < working_set->size) {
    return Error{ErrorCode::kLimit, "memory", "the filled buffer is not resident: pages were swapped out or merged"};
  }
  result.huge_page_bytes = std::min(resident.huge, working_set->size);

  WatchedSource source(**pool, options.root, before.reclaim_events);
  const SweepOptions choice = sweep_options(options, std::move(counts).value());
  result.repetitions = choice.repetitions;
  auto sweep = run_sweep(choice, source, progress);
  if (!sweep.ok()) return sweep.error();
  const unsigned threads = sweep->confirmation ? sweep->confirmation->threads : threads_max;
  for (Cell& cell : sweep->cells) result.cells.push_back(named(std::move(cell)));
  if (!choice.start || !choice.start->alone) {
    auto copied = run_cell(kCopyKernel, threads, choice.repetitions, source, progress);
    if (!copied.ok()) return copied.error();
    result.copy = copied->best;
    result.cells.push_back(named(std::move(copied).value()));
  }

  result.surroundings = surroundings_between(before, read_conditions(options.root));
  if (result.surroundings.reclaim_events > 0) return reclaimed();
  result.verdict = judge(*sweep, topology, threads, result.surroundings);
  warn_about_surroundings(topology, before, result.llc, threads_max, (*pool)->unpinned(), result.warnings);
  if (result.cache_inflated) {
    result.warnings.push_back("cache inflated: the working set is under 4 × the last-level caches");
  }
  warn_about_run(result.surroundings, topology, result.warnings);
  if (options.start_from && !choice.start) {
    result.warnings.push_back(fmt::format("{} with {} threads cannot be run here: the whole sweep was made",
                                          options.start_from->kernel, options.start_from->threads));
  }
  if (sweep->kernels_left_out > 0) {
    result.warnings.push_back(fmt::format("{} of {} kernels left out to keep the time limit", sweep->kernels_left_out,
                                          choice.kernels.size()));
  }
  if (sweep->repetitions_discarded > 0) {
    result.warnings.push_back(
        fmt::format("{} repetitions discarded: the clock stood still", sweep->repetitions_discarded));
  }
  if (sweep->confirmation) result.winner = named(std::move(*sweep->confirmation));
  result.duration_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

}  // namespace rooflined::ceiling
