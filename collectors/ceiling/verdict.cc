#include "collectors/ceiling/verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace rooflined::ceiling {
namespace {

// Of the time that our workers wanted to run, what the host may take: the stability rule forgives a quarter, so a fifth
// all along would pass it unseen.
constexpr double kStealMax = 0.20;
constexpr double kStealWarning = 0.05;
// What others may use of the CPUs: a twentieth, and a quarter of a CPU on a small machine, where one CPU that streams
// takes most of the memory's rate.
constexpr double kOthersShareMax = 0.05;
constexpr double kOthersCpusMax = 0.25;
// Ten runs on two CPUs showed 0.13 to 0.17 while others used 0.15 of a CPU, and 0.98 while they used 1.3.
constexpr double kCpuPressureShareMax = 0.3;
constexpr double kCpuPressureWarning = 20;
// A packet costs 0.1 to 0.2 ms of a repetition of 20 ms or more, and few come in five repetitions in a row.
constexpr double kHeldShareMax = 0.02;

bool busy_with_others(const Surroundings& seen, const Topology& topology) {
  const double others_max = std::max(kOthersCpusMax, kOthersShareMax * static_cast<double>(topology.cpus.size()));
  return seen.others_cpus > others_max || seen.cpu_pressure_share.value_or(0) > kCpuPressureShareMax;
}

// Every pass finds the whole buffer in the caches together, or may: each worker's pieces in its own.
bool cache_resident(const Measurement& measurement) {
  return measurement.llc && measurement.working_set <= *measurement.llc;
}

void warn_of_limits(const Topology& topology, const Evidence& evidence, std::vector<std::string>& warnings) {
  const unsigned threads_max = evidence.threads_max;
  if (topology.throttled()) {
    warnings.push_back(fmt::format("throttled: the cgroup's quota is {:.2f} of a CPU", *topology.quota_cpus));
  } else if (topology.quota_cpus && *topology.quota_cpus < threads_max) {
    warnings.push_back(
        fmt::format("throttled: {} threads on a cgroup quota of {:.2f} CPUs", threads_max, *topology.quota_cpus));
  } else if (topology.threads_max() < topology.cpus.size()) {
    warnings.push_back(
        fmt::format("the cgroup's quota allows {} of {} CPUs", topology.threads_max(), topology.cpus.size()));
  }
}

// Memory that no CPU is near to, on CXL or beside the processor (HBM): nobody of ours fills it.
void warn_of_nodes_left_out(const Topology& topology, std::vector<std::string>& warnings) {
  for (const int node : topology.memory_nodes) {
    const bool read =
        std::any_of(topology.cpus.begin(), topology.cpus.end(), [node](const Cpu& cpu) { return cpu.node == node; });
    if (!read) warnings.push_back(fmt::format("the memory of node {} is not measured: no CPU used is on it", node));
  }
}

void warn_before_run(const Topology& topology, const Conditions& before, std::vector<std::string>& warnings) {
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
    case Verdict::kCacheResident:
      return "cache resident";
  }
  return "unstable";
}

Verdict judge(const Measurement& measurement, const Topology& topology, const Evidence& evidence) {
  if (topology.quota_cpus && *topology.quota_cpus < static_cast<double>(evidence.threads)) return Verdict::kThrottled;
  if (evidence.seen.throttled_periods > 0) return Verdict::kThrottled;
  if (evidence.seen.steal_share >= kStealMax || busy_with_others(evidence.seen, topology)) return Verdict::kContended;
  if (evidence.held_share > kHeldShareMax) return Verdict::kContended;
  if (!evidence.confirmed) return Verdict::kUnstable;
  return cache_resident(measurement) ? Verdict::kCacheResident : Verdict::kConfirmed;
}

std::vector<std::string> warnings_of(const Measurement& measurement, const Topology& topology,
                                     const Evidence& evidence) {
  std::vector<std::string> warnings;
  if (!measurement.llc) warnings.emplace_back("no cache size known: neither the system nor the processor reports one");
  warn_of_limits(topology, evidence, warnings);
  warn_of_nodes_left_out(topology, warnings);
  if (evidence.unpinned > 0) {
    warnings.push_back(fmt::format("{} workers could not be pinned to their CPU", evidence.unpinned));
  }
  warn_before_run(topology, evidence.before, warnings);
  warn_about_run(evidence.seen, topology, warnings);
  if (evidence.held_share > kHeldShareMax) {
    warnings.push_back(
        fmt::format("contended: packets to the watched ports that were no requests for tokens held a "
                    "repetition up for {:.0f} % of its time",
                    100 * evidence.held_share));
  }
  if (cache_resident(measurement)) {
    warnings.emplace_back("cache resident: the working set fits into the last-level caches, no memory was measured");
  } else if (measurement.cache_inflated) {
    warnings.emplace_back("cache inflated: the working set is under 4 × the last-level caches");
  }
  return warnings;
}

}  // namespace rooflined::ceiling
