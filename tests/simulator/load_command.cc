// rooflined-sim load: clients against a server, and what they saw.

#include "tests/simulator/commands.h"
#include "tests/simulator/load_arguments.h"
#include "tests/simulator/load_report.h"
#include "tests/simulator/option_units.h"
#include "tests/simulator/watched_load.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace rooflined::simulator {
namespace {

struct Arguments {
  LoadArguments load;
  double duration_seconds = 0;
  bool cut = false;
  bool json = false;
};

void print_json(const Arguments& arguments, const LoadOptions& options, LoadResult& result) {
  nlohmann::ordered_json json = {{"url", arguments.load.url}};
  json["concurrency"] = nullptr;
  json["rate"] = nullptr;
  if (options.pattern.rate) {
    json["rate"] = *options.pattern.rate;
  } else {
    json["concurrency"] = options.pattern.concurrency;
  }
  json.update(load_json(result));
  fmt::print("{}\n", json.dump());
}

int run_load(const Arguments& arguments) {
  auto pattern = load_pattern(arguments.load.pattern);
  auto options = pattern ? load_options(arguments.load, *pattern) : pattern.error();
  if (!options) {
    fmt::print(stderr, "rooflined-sim: {}\n", options.error().message());
    return 2;
  }
  options->duration = to_nanoseconds(arguments.duration_seconds);
  WatchedLoad watched = run_watched(*options, arguments.cut, "");
  if (arguments.json) {
    print_json(arguments, *options, watched.result);
  } else {
    print_load_table(watched.result);
  }
  if (watched.interrupted) return 130;
  return watched.result.completed > 0 ? 0 : 1;
}

}  // namespace

void add_load_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("load", "Clients that load a server and measure what they see");
  auto arguments = std::make_shared<Arguments>();
  add_load_options(*command, arguments->load);
  add_pattern_options(*command, arguments->load.pattern);
  command->add_option("--duration", arguments->duration_seconds, "No request begins later: 30s, 5m")
      ->required()
      ->transform(duration_unit())
      ->check(above_zero())
      ->check(CLI::Range(0.0, 3.2e7));
  command->add_flag("--cut", arguments->cut, "Cut off what is in flight then, instead of letting it end");
  command->add_flag("--json", arguments->json, "One JSON object on stdout");
  command->callback([arguments, &exit_status] { exit_status = run_load(*arguments); });
}

}  // namespace rooflined::simulator
