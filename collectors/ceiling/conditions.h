// What else the machine did while a probe ran: processor time stolen by the host, load, pressure, reclaim.
//
// A reading is taken before, after, and (reclaim) between repetitions. Threads: any.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rooflined::ceiling {

// Of the line "cpu" of /proc/stat, in ticks.
struct CpuTimes {
  std::uint64_t busy = 0;  // everything but idle and waiting for I/O, steal included
  std::uint64_t steal = 0;
};
std::optional<CpuTimes> parse_cpu_times(std::string_view stat);
// Of the time in which a task was to run, the share that the host gave to others; 0 when nothing ran.
double steal_share(const CpuTimes& before, const CpuTimes& after);

struct Conditions {
  CpuTimes cpu;
  double own_cpu_seconds = 0;     // of this process, user and system
  double uptime_seconds = 0;      // monotonic, of the reading
  double load1 = 0;               // tasks, mean over a minute
  double cpu_pressure_avg10 = 0;  // percent
  // Since boot: how long some task waited for a CPU. Absent where the kernel does not say.
  std::optional<double> cpu_pressure_seconds;
  // Since the groups began: in how many periods the quota stopped this process's groups.
  std::uint64_t throttled_periods = 0;
  std::uint64_t reclaim_events = 0;  // pages taken from page cache or others, and stalls on compaction, since boot
};
Conditions read_conditions(const std::string& root);

// What the readings before and after a run say of the time between them.
struct Surroundings {
  double steal_share = 0;                    // see steal_share()
  double others_cpus = 0;                    // CPUs that other processes kept busy, on average
  std::optional<double> cpu_pressure_share;  // of the time, in which some task waited for a CPU, ours included
  std::uint64_t throttled_periods = 0;       // in which the quota stopped us
  std::uint64_t reclaim_events = 0;
};
Surroundings surroundings_between(const Conditions& before, const Conditions& after);

std::uint64_t read_reclaim_events(const std::string& root);

}  // namespace rooflined::ceiling
