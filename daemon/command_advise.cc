// rooflined advise: which quantisation format to take on this core, from what was published, or measured here.

#include "collectors/ceiling/identity.h"
#include "collectors/model/model_reader.h"
#include "daemon/advice_report.h"
#include "daemon/bench_options.h"
#include "daemon/core_evidence.h"
#include "daemon/format_matrix.h"
#include "daemon/number_option.h"
#include "daemon/workbench_commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rooflined::daemon {
namespace {

struct Arguments {
  BenchOptions options;
  std::string core;
  double scale = 0;
  bool measure = false;
  bool markdown = false;
  bool json = false;
};

int say(const std::string& line, int status) {
  std::fputs(fmt::format("rooflined advise: {}\n", line).c_str(), stderr);
  return status;
}

void print(const Advice& advice, const Arguments& arguments) {
  if (arguments.json) {
    fmt::print("{}\n", advice_json(advice).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    fmt::print("{}", advice_text(advice, arguments.markdown));
  }
}

void add_recipe(Advice& advice) {
  advice.notes = {
      "No table: nothing is carried over from other cores. To measure it here, quantise one F16 file into each format",
      "  llama-quantize model-f16.gguf model-Q4_0.gguf Q4_0        (and IQ4_NL, IQ4_XS, Q4_K_M, Q6_K, Q8_0)",
      "and rank what this machine makes of them, on the threads that you will serve with",
      "  rooflined advise --measure --threads 4 model-*.gguf",
  };
}

int published(const Arguments& arguments) {
  const CoreEvidence evidence = arguments.core.empty() ? evidence_of_cpu(ceiling::read_identity("/").cpu_model)
                                                       : evidence_of_core(arguments.core);
  Advice advice;
  advice.core = evidence.core;
  advice.evidence = evidence_words(evidence.level);
  if (evidence.level == Evidence::kNone) {
    add_recipe(advice);
    print(advice, arguments);
    return 1;
  }
  advice.source = kFormatSource;
  const std::vector<unsigned>& threads = arguments.options.plan.threads;
  for (FormatMeasurement& one : published_formats()) {
    const bool scale = arguments.scale <= 0 || std::fabs(one.scale - arguments.scale) < 0.01;
    const bool count = threads.empty() || std::find(threads.begin(), threads.end(), one.threads) != threads.end();
    if (scale && count) advice.measurements.push_back(std::move(one));
  }
  if (advice.measurements.empty())
    return say("nothing was published at that scale and thread count (0.5 at 2, 3, 4; 1.5 at 2, 4)", 1);
  print(advice, arguments);
  return 0;
}

// One table for each thread count at which models were measured.
std::vector<FormatMeasurement> measured_formats(const BenchInput& input) {
  std::map<unsigned, FormatMeasurement> by_threads;
  for (const BenchModel& model : input.models) {
    std::optional<double> on_label;
    if (const auto file = model::read_model(model.path); file.ok() && file->on_label_share) {
      on_label = 100 * *file->on_label_share;
    }
    for (const BenchRun& run : model.runs) {
      if (!run.decode || !model.bytes) continue;
      FormatMeasurement& into = by_threads[run.threads];
      into.threads = run.threads;
      into.formats.push_back({model.name, *run.decode, *model.bytes / 1048576, std::nullopt, on_label});
    }
  }
  std::vector<FormatMeasurement> all;
  for (auto& [threads, one] : by_threads) all.push_back(std::move(one));
  return all;
}

int measured(const Arguments& arguments) {
  if (arguments.options.plan.models.empty()) return say("--measure needs the GGUF files that it is to compare", 2);
  BenchPlan plan = bench_plan(arguments.options);
  plan.measure_ceiling = false;  // formats are compared with each other
  int status = 0;
  const std::optional<BenchOutcome> outcome = run_bench_command(plan, "advise", status);
  if (!outcome) return status;
  Advice advice;
  advice.core = ceiling::read_identity("/").cpu_model;
  advice.evidence = "measured here, now";
  advice.source = "llama-bench on the files given";
  const BenchInput& input = outcome->document.input;
  advice.measurements = measured_formats(input);
  for (const BenchModel& model : input.models) {
    for (const std::string& failure : model.failures) advice.notes.push_back(model.name + ": " + failure);
  }
  print(advice, arguments);
  if (outcome->interrupted) return say("interrupted", 130);
  return advice.measurements.empty() ? say("nothing was measured", 1) : 0;
}

int advise(const Arguments& arguments) {
  if (arguments.measure && !arguments.core.empty())
    return say("--core is for published measurements; --measure is of this machine", 2);
  if (!arguments.measure && !arguments.options.plan.models.empty())
    return say("models are measured with --measure only", 2);
  return arguments.measure ? measured(arguments) : published(arguments);
}

}  // namespace

void add_advise_command(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("advise", "Rank quantisation formats, as published for this core or measured here");
  command->add_option("MODEL", arguments->options.plan.models, "GGUF files to compare, with --measure");
  command->add_option("--core", arguments->core, "Core design, as cortex-a76 (default: the one of this machine)");
  command->add_option("--scale", arguments->scale, "Billions of parameters: 0.5 or 1.5 (default: both)")
      ->check(number_between(0.01, 1e6));
  command->add_flag("--measure", arguments->measure, "Measure the models here, by llama-bench");
  add_bench_options(*command, arguments->options);
  CLI::Option* const markdown = command->add_flag("--markdown", arguments->markdown, "Markdown on stdout");
  command->add_flag("--json", arguments->json, "One JSON object on stdout")->excludes(markdown);
  command->callback([arguments, &exit_status] { exit_status = advise(*arguments); });
}

}  // namespace rooflined::daemon
