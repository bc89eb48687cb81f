#include "collectors/ceiling/system_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace rooflined::ceiling {
namespace {

constexpr std::size_t kFileBytesMax = 4 * kMiB;  // /proc/zoneinfo grows with CPUs × zones: 300 kB on 400 CPUs
constexpr int kCpuMax = 65535;
constexpr std::size_t kEntriesMax = 65536;

std::string below(const std::string& root, const std::string& path) {
  return root == "/" ? path : root + path;
}

}  // namespace

std::optional<std::string> read_system_file(const std::string& root, const std::string& path) {
  const int fd = ::open(below(root, path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string text;
  std::array<char, 8192> piece;
  bool ok = true;
  while (text.size() < kFileBytesMax) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got == 0) break;
    if (got < 0) {
      ok = false;
      break;
    }
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  if (!ok) return std::nullopt;
  return text;
}

std::optional<std::uint64_t> read_system_integer(const std::string& root, const std::string& path) {
  const auto text = read_system_file(root, path);
  return text ? parse_integer(*text) : std::nullopt;
}

std::vector<int> numbered_entries(const std::string& root, const std::string& path, std::string_view prefix) {
  std::vector<int> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(below(root, path), error), end;
       !error && entry != end && numbers.size() < kEntriesMax; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const auto number = parse_integer(std::string_view(name).substr(prefix.size()));
    if (number && *number <= static_cast<std::uint64_t>(kCpuMax)) numbers.push_back(static_cast<int>(*number));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<std::uint64_t> parse_integer(std::string_view text) {
  text = trimmed(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  text = trimmed(text);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const auto first = parse_integer(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_integer(range.substr(dash + 1));
    if (first && last) {
      const std::uint64_t end = std::min<std::uint64_t>(*last, kCpuMax);
      for (std::uint64_t cpu = *first; cpu <= end && cpus.size() < kEntriesMax; ++cpu)
        cpus.push_back(static_cast<int>(cpu));
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::optional<Bytes> parse_size(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  unsigned shift = 0;
  switch (text.back()) {
    case 'K':
      shift = 10;
      break;
    case 'M':
      shift = 20;
      break;
    case 'G':
      shift = 30;
      break;
    default:
      break;
  }
  if (shift > 0) text.remove_suffix(1);
  const auto number = parse_integer(text);
  if (!number || *number > (~std::uint64_t{0} >> shift)) return std::nullopt;
  return *number << shift;
}

std::optional<std::uint64_t> value_of_line(std::string_view text, std::string_view key) {
  std::optional<std::uint64_t> value;
  for_each_line(text, [&](std::string_view line) {
    line = trimmed(line);
    if (value || !line.starts_with(key)) return;
    const std::string_view rest = line.substr(key.size());
    const std::size_t first = rest.find_first_not_of(" \t:");
    // The key is a whole word: "pgsteal_kswapd" is no line of "pgsteal".
    if (first == 0 || first == std::string_view::npos) return;
    value = parse_integer(rest.substr(first, rest.find_first_of(" \t", first) - first));
  });
  return value;
}

}  // namespace rooflined::ceiling
