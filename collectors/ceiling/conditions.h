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
  double load1 = 0;                  // tasks, mean over a minute
  double cpu_pressure_avg10 = 0;     // percent
  std::uint64_t reclaim_events = 0;  // pages taken from page cache or others, and stalls on compaction, since boot
};
Conditions read_conditions(const std::string& root);
std::uint64_t read_reclaim_events(const std::string& root);

}  // namespace rooflined::ceiling
