// Runs another program to its end and keeps what it says, within bounds.
//
// Its standard input is empty, it has a process group of its own, and it does not outlive this process: a benchmark
// that waits for input, or that nobody waits for, would hold the machine. Threads: one that has no others (fork).

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace rooflined::daemon {

struct ChildOptions {
  std::vector<std::string> arguments;  // the first one is the path of the program
  Duration limit{};
  std::size_t output_bytes_max = 4 * 1024 * 1024;  // of each stream; what comes after is read and dropped
};

struct ChildOutcome {
  enum class End { kExited, kSignalled, kTimeLimit, kStopped };
  End end = End::kExited;
  int code = 0;  // the exit status, or the signal
  std::string out;
  std::string err;
};

// `stop` is asked ten times a second; where it says true, or past the limit, the whole group is killed.
// Errors: kNotFound, kDenied, kIo where the program could not be started.
Result<ChildOutcome> run_child(const ChildOptions& options, const std::function<bool()>& stop);

}  // namespace rooflined::daemon
