#include "collectors/ceiling/host_reading.h"

#include "collectors/ceiling/conditions.h"
#include "collectors/ceiling/system_files.h"

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <string_view>

namespace rooflined::ceiling {
namespace {

// Kernels before 4.20, and those told psi=0, have no such file or cannot read it.
std::optional<double> pressure(const std::string& root, const char* path) {
  constexpr std::string_view kKey = "some avg10=";
  const std::string text = read_system_file(root, path).value_or("");
  const std::size_t at = text.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  double value = 0;
  const auto parsed = std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

bool names_one_cpu(std::string_view line) {
  return line.size() > 3 && line.starts_with("cpu") && line[3] >= '0' && line[3] <= '9';
}

}  // namespace

HostReading read_host(const std::string& root) {
  HostReading reading;
  const std::string stat = read_system_file(root, "/proc/stat").value_or("");
  for_each_line(stat, [&reading](std::string_view line) { reading.cpus += names_one_cpu(line) ? 1 : 0; });
  if (const auto times = parse_cpu_times(stat)) {
    reading.busy_seconds = static_cast<double>(times->busy) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  if (const auto running = value_of_line(stat, "procs_running")) {
    const std::uint64_t others = *running > 0 ? *running - 1 : 0;
    reading.tasks = static_cast<double>(others + value_of_line(stat, "procs_blocked").value_or(0));
  }
  reading.cpu_pressure = pressure(root, "/proc/pressure/cpu");
  reading.memory_pressure = pressure(root, "/proc/pressure/memory");
  return reading;
}

}  // namespace rooflined::ceiling
