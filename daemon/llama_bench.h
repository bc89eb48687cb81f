// llama.cpp's own benchmark, the user's build of it: where it is, how it is called, what it answered.
//
// It is called with -o json only, always with a prompt (an empty one makes some builds report a fraction of their
// decode rate), never with a context option (it has none), and never is llama-cli, which may wait for input. What it
// prints comes from outside: bounded, and never trusted to be JSON alone. Threads: one.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::daemon {

struct LlamaBenchOptions {
  std::string path;
  std::string model;
  unsigned threads = 1;
  unsigned n_prompt = 128;
  unsigned n_gen = 128;
  unsigned repetitions = 3;
  unsigned depth = 0;
  int gpu_layers = 0;
  Duration limit{};
};

struct LlamaBenchResult {
  std::optional<double> decode;  // tokens/s, mean of the repetitions
  std::optional<double> decode_deviation;
  std::optional<double> prefill;
  std::optional<double> prefill_deviation;
  std::optional<std::uint64_t> model_size;
  std::string model_type;
  std::string build_commit;
  std::optional<std::uint64_t> build_number;
  std::string cpu_info;
  std::string gpu_info;
  std::string backends;
  int gpu_layers = 0;
};

// `given`: a file, or a folder that holds it; empty: $LLAMA_BENCH, then $PATH, then where llama.cpp is usually built.
// Errors: kNotFound, with where it was looked for.
Result<std::string> find_llama_bench(const std::string& given);

// Errors: what is wrong with the program at `path`, before anything is measured: not one that can write JSON, or, where
// `depth` is asked for, too old for that.
Status check_llama_bench(const std::string& path, bool depth, const std::function<bool()>& stop);

std::vector<std::string> llama_bench_arguments(const LlamaBenchOptions& options);

// Banners before and text after the records are skipped. Errors: kInvalid where there are none.
Result<LlamaBenchResult> parse_llama_bench(std::string_view output);

// The lines of its standard error that say what went wrong, as one; its banners do not.
std::string llama_bench_complaint(std::string_view error_output);

// Errors: one line. kBusy where `stop` ended it.
Result<LlamaBenchResult> run_llama_bench(const LlamaBenchOptions& options, const std::function<bool()>& stop);

}  // namespace rooflined::daemon
