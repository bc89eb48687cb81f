// rooflined-sim load: clients against a server, and what they saw.

#include "tests/simulator/commands.h"
#include "tests/simulator/load.h"
#include "tests/simulator/option_units.h"

#include <fmt/format.h>

#include <pthread.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rooflined::simulator {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct LoadArguments {
  std::string url;
  double duration_seconds = 0;
  std::optional<std::size_t> concurrency;
  std::optional<double> rate;
  bool cut = false;
  bool json = false;
  ClientOptions client;
  std::uint64_t seed = 1;
};

Json latency_json(Samples& samples) {
  if (samples.count() == 0) return nullptr;
  return {{"mean", samples.mean()},
          {"p50", samples.quantile(0.50)},
          {"p95", samples.quantile(0.95)},
          {"p99", samples.quantile(0.99)}};
}

void print_json(const LoadArguments& arguments, LoadResult& result) {
  Json json = {{"url", arguments.url}};
  json["concurrency"] = arguments.rate ? Json(nullptr) : Json(arguments.concurrency.value_or(1));
  json["rate"] = arguments.rate ? Json(*arguments.rate) : Json(nullptr);
  json["elapsed_seconds"] = result.elapsed_seconds;
  json["requests"] = {
      {"completed", result.completed}, {"failed", result.failures()}, {"cut", result.cut}, {"skipped", result.skipped}};
  json["failures"] = result.failed;
  json["prompt_tokens"] = result.prompt_tokens;
  json["output_tokens"] = result.output_tokens;
  json["tokens_per_second"] = static_cast<double>(result.output_tokens) / result.elapsed_seconds;
  json["ttft_seconds"] = latency_json(result.ttft_seconds);
  json["itl_seconds"] = latency_json(result.itl_seconds);
  json["request_seconds"] = latency_json(result.request_seconds);
  fmt::print("{}\n", json.dump());
}

void print_latency(const char* name, Samples& samples) {
  if (samples.count() == 0) return;
  fmt::print("{:<22} mean {:.3f} ms, p50 {:.3f}, p95 {:.3f}, p99 {:.3f}\n", name, samples.mean() * 1e3,
             samples.quantile(0.50) * 1e3, samples.quantile(0.95) * 1e3, samples.quantile(0.99) * 1e3);
}

void print_table(LoadResult& result) {
  fmt::print("{:<22} {} completed, {} failed, {} cut\n", "requests", result.completed, result.failures(), result.cut);
  for (const auto& [reason, times] : result.failed) fmt::print("{:<22} {} × {}\n", "", times, reason);
  fmt::print("{:<22} {} in {:.1f} s: {:.1f} per second\n", "output tokens", result.output_tokens,
             result.elapsed_seconds, static_cast<double>(result.output_tokens) / result.elapsed_seconds);
  print_latency("time to first token", result.ttft_seconds);
  print_latency("inter-token latency", result.itl_seconds);
}

class ProgressLine {
 public:
  void show(const LoadProgress& progress, double seconds) {
    if (!terminal_) return;
    fmt::print(stderr, "\r{:6.0f} s  {} in flight  {} completed  {} failed  {} tokens/s\033[K", seconds,
               progress.in_flight, progress.completed, progress.failures, progress.output_tokens - tokens_before_);
    tokens_before_ = progress.output_tokens;
  }
  ~ProgressLine() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::uint64_t tokens_before_ = 0;
};

// Runs `load` on a thread of its own and watches over it; true when a signal ended it.
bool run_watched(Load& load, const LoadArguments& arguments, LoadResult& result) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // inherited by every thread: sigtimedwait() below takes them

  auto running = std::async(std::launch::async, [&load] { return load.run(); });
  ProgressLine progress;
  bool interrupted = false;
  constexpr long kTickNs = 100'000'000;
  constexpr int kTicksPerLine = 10;
  for (int tick = 1; running.wait_for(std::chrono::seconds(0)) != std::future_status::ready; ++tick) {
    const timespec pause{0, kTickNs};
    if (sigtimedwait(&signals, nullptr, &pause) > 0) interrupted = true;
    const double seconds = static_cast<double>(tick) * kTickNs * 1e-9;
    if (interrupted || (arguments.cut && seconds >= arguments.duration_seconds)) load.stop();
    if (tick % kTicksPerLine == 0) progress.show(load.progress(), seconds);
  }
  result = running.get();
  return interrupted;
}

int run_load(const LoadArguments& arguments) {
  auto client = client_options_for(arguments.url);
  if (!client) {
    fmt::print(stderr, "rooflined-sim: {}\n", client.error().message());
    return 2;
  }
  client->prompt_tokens = arguments.client.prompt_tokens;
  client->output_tokens = arguments.client.output_tokens;
  client->stream = arguments.client.stream;
  client->ask_usage = arguments.client.ask_usage;
  LoadOptions options;
  options.client = *client;
  options.concurrency = arguments.concurrency.value_or(1);
  options.rate = arguments.rate;
  options.duration =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(arguments.duration_seconds));
  options.seed = arguments.seed;
  Load load(options);
  LoadResult result;
  const bool interrupted = run_watched(load, arguments, result);
  if (arguments.json) {
    print_json(arguments, result);
  } else {
    print_table(result);
  }
  if (interrupted) return 130;
  return result.completed > 0 ? 0 : 1;
}

}  // namespace

void add_load_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("load", "Clients that load a server and measure what they see");
  auto arguments = std::make_shared<LoadArguments>();
  command->add_option("--url", arguments->url, "http://HOST:PORT, or the URL of a generation route")->required();
  auto* arrivals = command->add_option_group("arrivals");
  arrivals
      ->add_option("--concurrency", arguments->concurrency, "Clients; each waits for its answer before it asks again")
      ->check(CLI::Range(std::size_t{1}, std::size_t{4096}));
  arrivals->add_option("--rate", arguments->rate, "Requests per second, at random (Poisson)")->check(above_zero());
  arrivals->require_option(1);
  command->add_option("--duration", arguments->duration_seconds, "No request begins later: 30s, 5m")
      ->required()
      ->transform(duration_unit())
      ->check(above_zero())
      ->check(CLI::Range(0.0, 3.2e7));
  command->add_flag("--cut", arguments->cut, "Cut off what is in flight then, instead of letting it end");
  command->add_option("--prompt-tokens", arguments->client.prompt_tokens, "Words of each prompt")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000}))
      ->capture_default_str();
  command->add_option("--output-tokens", arguments->client.output_tokens, "Asked for by each request")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000}))
      ->capture_default_str();
  command->add_flag("--stream,!--no-stream", arguments->client.stream, "Streamed answers (default)");
  command->add_flag("--usage,!--no-usage", arguments->client.ask_usage, "Ask for the total at the end (default)");
  command->add_option("--seed", arguments->seed, "Of the random arrivals")->capture_default_str();
  command->add_flag("--json", arguments->json, "One JSON object on stdout");
  command->callback([arguments, &exit_status] { exit_status = run_load(*arguments); });
}

}  // namespace rooflined::simulator
