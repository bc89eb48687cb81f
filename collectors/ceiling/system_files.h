// Reads the small files of /proc, /sys and the cgroup tree, below a root that tests replace by a tree of their own.
//
// A file that is missing, unreadable or not what it should be is "nothing", never an error: kernels differ in what they
// show. At most 4 MiB of a file are read. Threads: any.

#pragma once

#include "metrics/base/units.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::ceiling {

// `path` is absolute ("/proc/stat"); `root` is "/" or the folder that stands for it.
std::optional<std::string> read_system_file(const std::string& root, const std::string& path);
std::optional<std::uint64_t> read_system_integer(const std::string& root, const std::string& path);

// The names in a folder that begin with `prefix` and go on with digits only, as numbers, ascending: "cpu" → 0, 1, …
std::vector<int> numbered_entries(const std::string& root, const std::string& path, std::string_view prefix);

std::string_view trimmed(std::string_view text);
std::optional<std::uint64_t> parse_integer(std::string_view text);
// "0-3,6" → 0 1 2 3 6, ascending, without repetition. Numbers above 65535 are left out.
std::vector<int> parse_cpu_list(std::string_view text);
// "98304K", "32M", "1024".
std::optional<Bytes> parse_size(std::string_view text);
// The number after `key` at the beginning of a line: "MemFree:   12 kB" → 12.
std::optional<std::uint64_t> value_of_line(std::string_view text, std::string_view key);

// Calls `each` with every line, without its end.
template <typename Function>
void for_each_line(std::string_view text, Function each) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    each(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace rooflined::ceiling
