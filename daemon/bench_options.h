// The options of a benchmark on the command line, for every command that runs one. Threads: one.

#pragma once

#include "daemon/bench_runner.h"

#include <string>

namespace CLI {
class App;
}

namespace rooflined::daemon {

struct BenchOptions {
  BenchPlan plan;
  double ceiling = 0;
  bool skip_membw = false;
  std::string bytes = "streamed";
  double timeout_seconds = 3600;
};

// All but the models and where the results go.
void add_bench_options(CLI::App& command, BenchOptions& options);

BenchPlan bench_plan(const BenchOptions& options);

// Runs it under the signals, with progress on a terminal. What is wrong is one line on stderr, "rooflined NAME: …", and
// then the exit status is what comes back; nothing where there is an outcome.
std::optional<BenchOutcome> run_bench_command(const BenchPlan& plan, const std::string& name, int& exit_status);

}  // namespace rooflined::daemon
