#include "metrics/export/process_stats.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace rooflined::metrics_export {

namespace {

std::optional<std::string> read_small_file(const std::string& path) {
  constexpr std::size_t kBytesMax = 256 * 1024;  // /proc/stat has a line for each CPU and one for all interrupts
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::optional<double> to_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The rest of the line that begins with `key`, without leading blanks.
std::string_view line_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : text.size());
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const std::size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view() : line.substr(first);
  }
  return {};
}

// The fields of proc_pid_stat(5) from the third on: the second, the name in brackets, may hold blanks and brackets.
std::vector<std::string> stat_fields(const std::string& text) {
  std::vector<std::string> fields;
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string::npos) return fields;
  std::istringstream rest(text.substr(bracket + 1));
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

}  // namespace

ProcessStats read_process_stats(const std::string& proc_root) {
  ProcessStats stats;
  const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (const auto text = read_small_file(proc_root + "/self/stat")) {
    const auto fields = stat_fields(*text);
    const auto field = [&fields](std::size_t number) -> std::optional<double> {  // numbered as in the manual page
      return number - 3 < fields.size() ? to_number(fields[number - 3]) : std::nullopt;
    };
    if (const auto user = field(14), system = field(15); user && system) {
      stats.cpu_seconds = (*user + *system) / ticks_per_second;
    }
    stats.virtual_bytes = field(23);
    if (const auto pages = field(24)) stats.resident_bytes = *pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
    if (const auto started = field(22)) {
      const auto boot = read_small_file(proc_root + "/stat");
      if (const auto booted = boot ? to_number(line_after(*boot, "btime")) : std::nullopt) {
        stats.start_time_seconds = *booted + *started / ticks_per_second;
      }
    }
  }
  if (const auto text = read_small_file(proc_root + "/self/limits")) {
    const std::string_view line = line_after(*text, "Max open files");
    stats.max_fds = to_number(line.substr(0, line.find(' ')));
  }
  std::error_code error;
  std::filesystem::directory_iterator entry(proc_root + "/self/fd", error);
  if (!error) {
    double count = 0;
    for (; entry != std::filesystem::directory_iterator() && !error; entry.increment(error)) ++count;
    stats.open_fds = count;
  }
  return stats;
}

}  // namespace rooflined::metrics_export
