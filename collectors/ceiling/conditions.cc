#include "collectors/ceiling/conditions.h"

#include "collectors/ceiling/system_files.h"

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
  conditions.load1 = number_after(read_system_file(root, "/proc/loadavg").value_or(""), "");
  conditions.cpu_pressure_avg10 =
      number_after(read_system_file(root, "/proc/pressure/cpu").value_or(""), "some avg10=");
  conditions.reclaim_events = read_reclaim_events(root);
  return conditions;
}

}  // namespace rooflined::ceiling
