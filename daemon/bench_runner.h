// Runs a benchmark: the ceiling, then llama-bench once for each model, thread count and depth.
//
// The sweep over thread counts is made at the smallest depth; deeper ones run at the count that was fastest there. What
// was measured is stored after each run. Threads: one.

#pragma once

#include "daemon/bench_document.h"
#include "daemon/bench_models.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rooflined::daemon {

struct BenchPlan {
  std::vector<std::string> models;
  std::string llama_bench;        // empty: found
  std::vector<unsigned> threads;  // empty: 1, half the physical cores, all of them, all logical CPUs
  unsigned n_prompt = 128;
  unsigned n_gen = 128;
  unsigned repetitions = 3;
  std::vector<unsigned> depths = {0};
  int gpu_layers = 0;
  BytesConvention bytes = BytesConvention::kStreamed;
  std::optional<BytesPerSecond> ceiling;  // instead of measuring
  bool measure_ceiling = true;
  Duration limit{};    // of one run of llama-bench
  std::string folder;  // bench.json goes there after each run; empty: nowhere
  std::string state_directory;
};

struct BenchOutcome {
  BenchDocument document;
  bool interrupted = false;
};

using Said = std::function<void(const std::string&)>;  // progress, a line that replaces the one before

// Errors: bad input, before anything was run; kBusy where it was interrupted then.
Result<BenchOutcome> run_bench(const BenchPlan& plan, const std::function<bool()>& stop, const Said& said);

}  // namespace rooflined::daemon
