#include "daemon/bench_options.h"

#include "daemon/number_option.h"
#include "daemon/signals.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cstdio>

namespace rooflined::daemon {

void add_bench_options(CLI::App& command, BenchOptions& options) {
  BenchPlan& plan = options.plan;
  command.add_option("--llama-bench", plan.llama_bench,
                     "llama.cpp's llama-bench, or its folder (default: $LLAMA_BENCH, $PATH, the usual build folders)");
  command
      .add_option("--threads", plan.threads,
                  "Thread counts to try, as 1,4,8 (default: 1, half the physical cores, all, all logical CPUs)")
      ->delimiter(',')
      ->allow_extra_args(false)  // a model may follow
      ->check(CLI::Range(1U, 65536U));
  command.add_option("--n-prompt", plan.n_prompt, "Tokens of prompt for prefill, at least 1 (default 128)")
      ->check(CLI::Range(1U, 1000000U));
  command.add_option("--n-gen", plan.n_gen, "Tokens to generate (default 128)")->check(CLI::Range(1U, 1000000U));
  command.add_option("--reps", plan.repetitions, "Repetitions of each run (default 3)")->check(CLI::Range(1U, 1000U));
  command
      .add_option("--depth", plan.depths,
                  "Tokens in the KV cache before, as 0,4096: threads are tried at the least of them")
      ->delimiter(',')
      ->allow_extra_args(false)  // a model may follow
      ->check(CLI::Range(0U, 100000000U));
  command
      .add_option("--gpu-layers", plan.gpu_layers, "Layers on a GPU (default 0): such models are left out of the fit")
      ->check(CLI::Range(-1, 100000));
  CLI::Option* const ceiling =
      command
          .add_option("--peak-bandwidth", options.ceiling, "Bytes per second of the memory, instead of measuring it")
          ->check(number_between(1, 1e16));
  command.add_flag("--skip-membw", options.skip_membw, "Do not measure the ceiling: no utilisations")
      ->excludes(ceiling);
  command
      .add_option("--bytes", options.bytes,
                  "Bytes of a token: the tensors that it reads (streamed, the default), or the model's size (file)")
      ->check(CLI::IsMember({"streamed", "file"}));
  command
      .add_option("--timeout", options.timeout_seconds, "Seconds that one run of llama-bench may take (default 3600)")
      ->check(number_between(0.1, 1e6));
  command.add_option("--state", plan.state_directory,
                     "State directory of the daemon, whose ceiling tells a contended one (default /var/lib/rooflined)");
  plan.state_directory = "/var/lib/rooflined";
}

BenchPlan bench_plan(const BenchOptions& options) {
  BenchPlan plan = options.plan;
  if (options.ceiling > 0) plan.ceiling = options.ceiling;
  plan.measure_ceiling = !options.skip_membw;
  plan.bytes = options.bytes == "file" ? BytesConvention::kFile : BytesConvention::kStreamed;
  plan.limit = from_seconds(options.timeout_seconds);
  return plan;
}

std::optional<BenchOutcome> run_bench_command(const BenchPlan& plan, const std::string& name, int& exit_status) {
  const StopSignals signals;
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const Said said = [terminal](const std::string& line) {
    if (terminal) std::fputs(("\r\033[K" + line).c_str(), stderr);
  };
  auto outcome = run_bench(
      plan, [&signals] { return signals.received(); }, said);
  said("");
  if (!outcome.ok()) {
    exit_status = outcome.error().code == ErrorCode::kBusy ? 130 : 2;
    std::fputs(fmt::format("rooflined {}: {}\n", name, outcome.error().message()).c_str(), stderr);
    return std::nullopt;
  }
  return std::move(*outcome);
}

}  // namespace rooflined::daemon
