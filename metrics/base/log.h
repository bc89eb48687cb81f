// The log front: what every folder may call. The daemon puts spdlog behind it; tests may collect the lines.
//
// One line per change of state, none per request or packet, and never a byte of a prompt, an answer, a header or an
// address of a client. Threads: any.

#pragma once

#include <fmt/format.h>

#include <string_view>

namespace rooflined::log {

enum class Level { kInfo, kWarning, kError };

using Sink = void (*)(Level level, std::string_view line);

// Before the first call lines of level kWarning and above go to stderr. Requires: `sink` lives as long as the process.
void set_sink(Sink sink);
void write(Level level, std::string_view line);

template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rooflined::log
