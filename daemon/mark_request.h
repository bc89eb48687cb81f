// What `rooflined mark-deploy` and the daemon say to each other over the control socket: one line of JSON each way.
//
//   to the daemon:  {"target": NAME, "version": TEXT, "accept": true|false}
//   back:           {"generation": N}, or {"error": LINE}
//
// Pure functions; a line is at most kLineBytesMax. Nothing throws.

#pragma once

#include "metrics/base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rooflined::daemon {

struct Mark {
  std::string target;
  std::string version;  // may be empty
  bool accept = false;  // the change is as it should be; no new deploy
};

struct MarkAnswer {
  std::uint64_t generation = 0;
  std::string error;  // empty: it was done
};

inline constexpr std::size_t kMarkLineBytesMax = 4096;

// Without the end of the line.
std::string mark_line(const Mark& mark);
std::string mark_answer_line(const MarkAnswer& answer);
Result<Mark> parse_mark(std::string_view line);
Result<MarkAnswer> parse_mark_answer(std::string_view line);

}  // namespace rooflined::daemon
