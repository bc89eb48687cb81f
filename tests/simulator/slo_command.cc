// rooflined-sim slo: the highest rate of requests that a server takes while it meets its targets, and what it does
// there.

#include "tests/simulator/commands.h"
#include "tests/simulator/daemon_view.h"
#include "tests/simulator/load_arguments.h"
#include "tests/simulator/load_report.h"
#include "tests/simulator/option_units.h"
#include "tests/simulator/rate_search.h"
#include "tests/simulator/watched_load.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rooflined::simulator {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  LoadArguments load;
  double percentile = 95;
  double trial_seconds = 30;
  RateSearch::Options search;
  std::string daemon_url;
  std::string target;
  double replicas = 1;
  bool json = false;
};

struct Trial {
  double rate = 0;
  bool meets = false;
  std::optional<double> ttft_seconds;  // at the percentile
  std::optional<double> itl_seconds;
  LoadResult load;
  std::optional<DaemonFigures> daemon;
};

int fail(const Error& error) {
  fmt::print(stderr, "rooflined-sim: {}\n", error.message());
  return 2;
}

void judge(const Arguments& arguments, Trial& trial) {
  const double share = arguments.percentile / 100;
  if (trial.load.ttft_seconds.count() > 0) trial.ttft_seconds = trial.load.ttft_seconds.quantile(share);
  if (trial.load.itl_seconds.count() > 0) trial.itl_seconds = trial.load.itl_seconds.quantile(share);
  const auto within = [](std::optional<double> seen, std::optional<double> most) {
    return !most || (seen && *seen <= *most);
  };
  trial.meets = trial.load.completed > 0 && trial.load.failures() == 0 && trial.load.skipped == 0 &&
                within(trial.ttft_seconds, arguments.load.ttft_seconds_max) &&
                within(trial.itl_seconds, arguments.load.itl_seconds_max);
}

// An interrupted trial ends the search.
Result<std::optional<Trial>> run_trial(const Arguments& arguments, LoadOptions options, double rate) {
  options.pattern.rate = rate;
  options.duration = options.warm_up + to_nanoseconds(arguments.trial_seconds);
  Trial trial;
  trial.rate = rate;
  DaemonScrape before;
  if (!arguments.daemon_url.empty()) {
    auto scrape = read_daemon(arguments.daemon_url);
    if (!scrape) return scrape.error();
    before = std::move(*scrape);
  }
  WatchedLoad watched = run_watched(options, true, fmt::format("{:.3g} per second  ", rate));
  if (watched.interrupted) return std::optional<Trial>();
  trial.load = std::move(watched.result);
  if (!arguments.daemon_url.empty()) {
    const auto after = read_daemon(arguments.daemon_url);
    if (!after) return after.error();
    trial.daemon = daemon_figures(before, *after, trial.load.elapsed_seconds, arguments.target, arguments.replicas);
  }
  judge(arguments, trial);
  return std::optional<Trial>(std::move(trial));
}

Json or_null(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

Json trial_json(Trial& trial) {
  Json json = {{"rate", trial.rate},
               {"meets", trial.meets},
               {"ttft_seconds_at_percentile", or_null(trial.ttft_seconds)},
               {"itl_seconds_at_percentile", or_null(trial.itl_seconds)},
               {"load", load_json(trial.load)},
               {"rooflined", nullptr}};
  if (trial.daemon) {
    json["rooflined"] = {{"target", trial.daemon->target},
                         {"mbu", or_null(trial.daemon->mbu)},
                         {"batch", or_null(trial.daemon->batch)},
                         {"itl_seconds", or_null(trial.daemon->itl_seconds)},
                         {"tokens_per_second", trial.daemon->tokens_per_second}};
  }
  return json;
}

void print_trial(const Trial& trial) {
  const auto ms = [](std::optional<double> seconds) {
    return seconds ? fmt::format("{:.1f}", *seconds * 1e3) : std::string("-");
  };
  const auto number = [](std::optional<double> value, const char* form) {
    return value ? fmt::format(fmt::runtime(form), *value) : std::string("-");
  };
  const std::optional<double> mbu = trial.daemon ? trial.daemon->mbu : std::nullopt;
  const std::optional<double> batch = trial.daemon ? trial.daemon->batch : std::nullopt;
  const double goodput = static_cast<double>(trial.load.good) / trial.load.elapsed_seconds;
  fmt::print("{:>10.3f} {:>6} {:>10} {:>10} {:>10.3f} {:>8} {:>8}\n", trial.rate, trial.meets ? "yes" : "no",
             ms(trial.ttft_seconds), ms(trial.itl_seconds), goodput, number(batch, "{:.2f}"), number(mbu, "{:.3f}"));
  std::fflush(stdout);
}

int run_slo(const Arguments& arguments) {
  PatternArguments pattern_arguments = arguments.load.pattern;
  pattern_arguments.concurrency.reset();
  pattern_arguments.rate = arguments.search.first;
  auto pattern = load_pattern(pattern_arguments);
  auto options = pattern ? load_options(arguments.load, *pattern) : pattern.error();
  if (!options) return fail(options.error());
  if (!arguments.json) {
    fmt::print("{:>10} {:>6} {:>10} {:>10} {:>10} {:>8} {:>8}\n", "rate/s", "meets",
               fmt::format("TTFT p{:g}", arguments.percentile), fmt::format("ITL p{:g} ms", arguments.percentile),
               "goodput/s", "batch", "MBU");
  }
  RateSearch search(arguments.search);
  Json trials = Json::array();
  Json best = nullptr;
  while (const auto rate = search.next()) {
    auto trial = run_trial(arguments, *options, *rate);
    if (!trial) return fail(trial.error());
    if (!*trial) return 130;
    search.take((*trial)->meets);
    if (!arguments.json) print_trial(**trial);
    trials.push_back(trial_json(**trial));
    if ((*trial)->meets) best = trials.back();
  }
  if (arguments.json) {
    const Json json = {{"url", arguments.load.url},
                       {"percentile", arguments.percentile},
                       {"ttft_seconds_max", or_null(arguments.load.ttft_seconds_max)},
                       {"itl_seconds_max", or_null(arguments.load.itl_seconds_max)},
                       {"rate", or_null(search.highest())},
                       {"found", search.is_found()},
                       {"boundary", best},
                       {"trials", trials}};
    fmt::print("{}\n", json.dump());
  } else if (search.highest()) {
    fmt::print("{} {:.3f} requests per second\n", search.is_found() ? "the boundary is at" : "no boundary up to",
               *search.highest());
  }
  return search.highest() ? 0 : 1;
}

}  // namespace

void add_slo_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("slo", "Looks for the highest rate at which a server meets its targets");
  auto arguments = std::make_shared<Arguments>();
  add_load_options(*command, arguments->load);
  add_pattern_options(*command, arguments->load.pattern, false);
  command->get_option("--ttft")->description("Most time to the first token at the percentile: 500ms");
  command->get_option("--itl")->description("Most time between tokens at the percentile: 50ms");
  command->add_option("--percentile", arguments->percentile, "At which the targets are to be met")
      ->check(CLI::Range(1.0, 100.0))
      ->capture_default_str();
  command->add_option("--trial", arguments->trial_seconds, "How long a rate is tried, after --warm-up (default 30s)")
      ->transform(duration_unit())
      ->check(above_zero());
  command->add_option("--first-rate", arguments->search.first, "Requests per second to begin with")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--precision", arguments->search.precision, "Of the rate found")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  command->add_option("--trials", arguments->search.trials_max, "At most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--rooflined", arguments->daemon_url, "http://HOST:PORT of a daemon that watches the server");
  command->add_option("--target", arguments->target, "Its name there (default: the one that bears most tokens)");
  command->add_option("--replicas", arguments->replicas, "Engines behind the port, for its MBU")
      ->check(above_zero())
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "One JSON object on stdout");
  command->callback([arguments, &exit_status] { exit_status = run_slo(*arguments); });
}

}  // namespace rooflined::simulator
