#include "tests/simulator/load_arguments.h"

#include "tests/simulator/option_units.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace rooflined::simulator {

void add_load_options(CLI::App& command, LoadArguments& arguments) {
  command.add_option("--url", arguments.url, "http://HOST:PORT, or the URL of a generation route")->required();
  command.add_flag("--stream,!--no-stream", arguments.stream, "Streamed answers (default)");
  command.add_option("--slow-share", arguments.slow_share, "Of the requests: whose clients read too slowly")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--warm-up", arguments.warm_up_seconds, "Requests that begin earlier are in none of the figures")
      ->transform(duration_unit())
      ->check(zero_or_more());
  command.add_option("--ttft", arguments.ttft_seconds_max, "A good request has its first token within: 500ms")
      ->transform(duration_unit())
      ->check(above_zero());
  command.add_option("--itl", arguments.itl_seconds_max, "And its tokens on average every: 50ms")
      ->transform(duration_unit())
      ->check(above_zero());
  command.add_option("--seed", arguments.seed, "Of what is drawn")->capture_default_str();
}

Result<LoadOptions> load_options(const LoadArguments& arguments, const LoadPattern& pattern) {
  auto client = client_options_for(arguments.url);
  if (!client) return client.error();
  client->ask_usage = pattern.ask_usage;
  LoadOptions options;
  options.client = std::move(*client);
  options.pattern = pattern;
  if (!arguments.stream) options.pattern.whole_share = 1;
  options.slow_share = arguments.slow_share;
  options.warm_up = to_nanoseconds(arguments.warm_up_seconds);
  options.ttft_seconds_max = arguments.ttft_seconds_max;
  options.itl_seconds_max = arguments.itl_seconds_max;
  options.seed = arguments.seed;
  return options;
}

}  // namespace rooflined::simulator
