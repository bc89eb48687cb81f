// What a look at the host shows of its being idle: processor time, tasks, pressure.
//
//   in:   /proc below a root
//   out:  a HostReading; what the kernel does not show is absent
//
// Threads: any.

#pragma once

#include <optional>
#include <string>

namespace rooflined::ceiling {

struct HostReading {
  unsigned cpus = 0;                   // online; 0 when unknown
  std::optional<double> busy_seconds;  // of all CPUs together, since boot; time stolen by the host included
  std::optional<double> tasks;         // that run or wait for a disk, the reader itself left out
  std::optional<double> cpu_pressure;  // percent of the last 10 s in which some task waited
  std::optional<double> memory_pressure;
};

HostReading read_host(const std::string& root);

}  // namespace rooflined::ceiling
