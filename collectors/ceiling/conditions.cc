#include "collectors/ceiling/conditions.h"

#include "collectors/ceiling/cgroup.h"
#include "collectors/ceiling/system_files.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace rooflined::ceiling {
namespace {

double number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  double value = 0;
  std::from_chars(text.data() + at + key.size(), text.data() + text.size(), value);
  return value;
}

double ticks_to_seconds(std::uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// /proc/self/stat, proc(5): utime and stime are the fields 14 and 15. The second field, the program's name in brackets,
// may hold blanks and brackets itself.
double own_cpu_seconds(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return 0;
  std::string_view rest = stat.substr(name_end + 1);
  std::uint64_t ticks = 0;
  for (int field = 3; field <= 15; ++field) {
    rest = trimmed(rest);
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (field >= 14) ticks += parse_integer(rest.substr(0, end)).value_or(0);
    rest.remove_prefix(end);
  }
  return ticks_to_seconds(ticks);
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12", in microseconds.
std::optional<double> pressure_seconds(std::string_view pressure) {
  std::optional<double> seconds;
  for_each_line(pressure, [&](std::string_view line) {
    if (seconds || !line.starts_with("some ") || line.find("total=") == std::string_view::npos) return;
    seconds = number_after(line, "total=") * 1e-6;
  });
  return seconds;
}

template <typename T>
T growth(T before, T after) {
  return after > before ? after - before : T(0);
}

}  // namespace

std::optional<CpuTimes> parse_cpu_times(std::string_view stat) {
  std::optional<CpuTimes> times;
  for_each_line(stat, [&](std::string_view line) {
    if (times || !line.starts_with("cpu ")) return;
    line.remove_prefix(4);
    times.emplace();
    // user nice system idle iowait irq softirq steal; guest time behind them is part of user time (proc(5)).
    for (int field = 0; field < 8; ++field) {
      line = trimmed(line);
      const std::size_t end = std::min(line.find(' '), line.size());
      const std::uint64_t ticks = parse_integer(line.substr(0, end)).value_or(0);
      line.remove_prefix(end);
      if (field != 3 && field != 4) times->busy += ticks;
      if (field == 7) times->steal = ticks;
    }
  });
  return times;
}

double steal_share(const CpuTimes& before, const CpuTimes& after) {
  if (after.busy <= before.busy || after.steal <= before.steal) return 0;
  return static_cast<double>(after.steal - before.steal) / static_cast<double>(after.busy - before.busy);
}

std::uint64_t read_reclaim_events(const std::string& root) {
  const std::string vmstat = read_system_file(root, "/proc/vmstat").value_or("");
  std::uint64_t events = 0;
  for (const char* name : {"pgsteal_kswapd", "pgsteal_direct", "compact_stall"}) {
    events += value_of_line(vmstat, name).value_or(0);
  }
  return events;
}

Conditions read_conditions(const std::string& root) {
  Conditions conditions;
  conditions.cpu = parse_cpu_times(read_system_file(root, "/proc/stat").value_or("")).value_or(CpuTimes());
  conditions.own_cpu_seconds = own_cpu_seconds(read_system_file(root, "/proc/self/stat").value_or(""));
  conditions.uptime_seconds = number_after(read_system_file(root, "/proc/uptime").value_or(""), "");
  conditions.load1 = number_after(read_system_file(root, "/proc/loadavg").value_or(""), "");
  const std::string pressure = read_system_file(root, "/proc/pressure/cpu").value_or("");
  conditions.cpu_pressure_avg10 = number_after(pressure, "some avg10=");
  conditions.cpu_pressure_seconds = pressure_seconds(pressure);
  conditions.throttled_periods = read_throttled_periods(root);
  conditions.reclaim_events = read_reclaim_events(root);
  return conditions;
}

Surroundings surroundings_between(const Conditions& before, const Conditions& after) {
  Surroundings seen;
  seen.steal_share = steal_share(before.cpu, after.cpu);
  seen.throttled_periods = growth(before.throttled_periods, after.throttled_periods);
  seen.reclaim_events = growth(before.reclaim_events, after.reclaim_events);
  const double seconds = growth(before.uptime_seconds, after.uptime_seconds);
  if (seconds <= 0) return seen;
  const double ran = ticks_to_seconds(growth(before.cpu.busy - before.cpu.steal, after.cpu.busy - after.cpu.steal));
  seen.others_cpus = growth(growth(before.own_cpu_seconds, after.own_cpu_seconds), ran) / seconds;
  if (before.cpu_pressure_seconds && after.cpu_pressure_seconds) {
    seen.cpu_pressure_share =
        std::min(1.0, growth(*before.cpu_pressure_seconds, *after.cpu_pressure_seconds) / seconds);
  }
  return seen;
}

}  // namespace rooflined::ceiling
