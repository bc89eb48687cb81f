#include "tests/simulator/server_arguments.h"

#include "tests/simulator/change_option.h"
#include "tests/simulator/dialect.h"
#include "tests/simulator/option_units.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace rooflined::simulator {
namespace {

CLI::Validator share() {
  return CLI::Range(0.0, 1.0);
}

void add_engine_options(CLI::App& command, EngineOptions& engine) {
  command
      .add_option("--bandwidth", engine.bandwidth,
                  "Bytes per second of the simulated memory: 50e9, 50GB; of each replica")
      ->required()
      ->transform(bytes_unit())
      ->check(above_zero());
  command.add_option("--efficiency", engine.efficiency, "Share of the bandwidth that a decode pass reaches, up to 1")
      ->required()
      ->check(above_zero())
      ->check(share());
  command.add_option("--max-batch", engine.batch_max, "Sequences at a time")
      ->check(CLI::Range(std::size_t{1}, std::size_t{65536}))
      ->capture_default_str();
  command.add_option("--prefill-rate", engine.prefill_tokens_per_second, "Prompt tokens per second; 0 is free")
      ->check(zero_or_more())
      ->capture_default_str();
  command.add_option("--prefill-chunk", engine.prefill_chunk, "Prompt tokens of one step at most; 0: whole prompts")
      ->capture_default_str();
  command.add_option("--overhead", engine.overhead_seconds, "Of each step: 2ms")
      ->transform(duration_unit())
      ->check(zero_or_more());
  command.add_option("--draft-tokens", engine.draft_tokens, "Speculative decoding: drafts that a pass verifies")
      ->check(CLI::Range(0, 64));
  command.add_option("--acceptance", engine.acceptance, "Of each draft")->check(share());
  command.add_option("--preemption", engine.preemption, "Probability of a step that a sequence loses its place")
      ->check(share());
  command.add_option("--jitter", engine.jitter.variation, "Of the time of steps: standard deviation over mean")
      ->check(CLI::Range(0.0, 2.0));
  command.add_option("--jitter-correlation", engine.jitter.correlation, "Of one draw with the next")
      ->check(CLI::Range(0.0, 0.999));
  command.add_option("--jitter-period", engine.jitter.period_seconds, "How long a draw holds: 10s; without: one step")
      ->transform(duration_unit())
      ->check(zero_or_more());
  command.add_option("--seed", engine.seed, "Of what is drawn")->capture_default_str();
}

}  // namespace

void add_server_options(CLI::App& command, ServerArguments& arguments) {
  ServerOptions& options = arguments.options;
  command
      .add_option("--model", arguments.model,
                  fmt::format("A GGUF file, a Hugging Face folder, a config.json, or builtin:NAME: {}, or a hub name",
                              fmt::join(preset_names(), ", ")))
      ->required();
  add_engine_options(command, options.engine);
  command.add_option("--dialect", options.dialect, "Whose frames")
      ->check(CLI::IsMember(dialect_names()))
      ->capture_default_str();
  command.add_option("--kv-cache-type", arguments.kv_cache_type, "T, or K,V")->capture_default_str();
  command.add_option("--routing", arguments.routing, "How many experts a pass reads: as expected, or drawn")
      ->check(CLI::IsMember({"expected", "random", "zipf"}))
      ->capture_default_str();
  command.add_option("--zipf", options.engine.routing_skew, "With --routing zipf: an expert's share falls as 1/rank^S")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command.add_option("--replicas", options.replicas, "Engines behind the port")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_option("--balance", arguments.balance, "Which of them a request goes to")
      ->check(CLI::IsMember({"least-loaded", "random"}))
      ->capture_default_str();
  command.add_option("--stream-interval", options.frames.stream_interval, "Tokens of one frame, after the first")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--merge", options.frames.merge, "Probability that a frame waits for the next one's segment")
      ->check(share());
  command.add_flag("--hide-drafts", arguments.hide_drafts, "No word about drafts in the answers");
  command.add_option("--cached-prompts", options.cached_share, "Share of each prompt that needs no prefill")
      ->check(share());
  command.add_option("--server-version", options.version, "What the server says its version is");
  command.add_option("--change", arguments.changes,
                     "TIME:KEY=VALUE[,…] after the start; bandwidth, efficiency, prefill-rate, overhead, restart, "
                     "version, warm-up; with --pcap also concurrency, rate, prompt-tokens, output-tokens");
}

Result<ServerOptions> server_options(const ServerArguments& arguments, bool with_load) {
  ServerOptions options = arguments.options;
  auto model = load_model(arguments.model, arguments.kv_cache_type);
  if (!model) return Error{model.error().code, "--model", model.error().message()};
  options.model = std::move(*model);
  options.engine.geometry = options.model.geometry;
  if (arguments.routing == "random") options.engine.routing = Routing::kRandom;
  if (arguments.routing == "zipf") options.engine.routing = Routing::kSkewed;
  options.balance = arguments.balance == "random" ? Balance::kRandom : Balance::kLeastLoaded;
  options.frames.tell_drafts = !arguments.hide_drafts;
  if (options.version.empty()) options.version = make_dialect(options.dialect)->version();
  auto changes = parse_changes(arguments.changes, with_load);
  if (!changes) return changes.error();
  options.changes = std::move(*changes);
  return options;
}

void add_pattern_options(CLI::App& command, PatternArguments& arguments, bool with_arrivals) {
  if (with_arrivals) {
    command
        .add_option("--concurrency", arguments.concurrency, "Clients; each waits for its answer before it asks again")
        ->check(CLI::Range(std::size_t{1}, std::size_t{4096}));
    command.add_option("--rate", arguments.rate, "Requests per second, at random (Poisson)")->check(above_zero());
  }
  const std::string lengths = "N, FROM-TO, exp:MEAN or lognormal:MEDIAN:SIGMA";
  command.add_option("--prompt-tokens", arguments.prompt_tokens, "Words of each prompt: " + lengths)
      ->capture_default_str();
  command.add_option("--output-tokens", arguments.output_tokens, "Asked for by each request: " + lengths)
      ->capture_default_str();
  command.add_option("--whole-share", arguments.pattern.whole_share, "Of the requests: not streamed")->check(share());
  command.add_option("--abort-share", arguments.pattern.abort_share, "Of the requests: left in the middle")
      ->check(share());
  command.add_flag("--usage,!--no-usage", arguments.pattern.ask_usage, "Ask for the total at the end (default)");
}

Result<LoadPattern> load_pattern(const PatternArguments& arguments) {
  if (arguments.concurrency.has_value() == arguments.rate.has_value()) {
    return Error{ErrorCode::kInvalid, "arrivals", "either --concurrency or --rate is needed"};
  }
  auto prompt = Lengths::parse(arguments.prompt_tokens);
  if (!prompt) return Error{prompt.error().code, "--prompt-tokens", prompt.error().message()};
  auto output = Lengths::parse(arguments.output_tokens);
  if (!output) return Error{output.error().code, "--output-tokens", output.error().message()};
  LoadPattern pattern = arguments.pattern;
  pattern.concurrency = arguments.concurrency.value_or(1);
  pattern.rate = arguments.rate;
  pattern.prompt_tokens = std::move(*prompt);
  pattern.output_tokens = std::move(*output);
  return pattern;
}

}  // namespace rooflined::simulator
