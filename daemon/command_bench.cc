// rooflined bench MODEL…: what this machine makes of its memory, by the user's own llama-bench.

#include "daemon/bench_files.h"
#include "daemon/bench_options.h"
#include "daemon/workbench_commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace rooflined::daemon {
namespace {

struct Arguments {
  BenchOptions options;
  std::string folder;
  bool markdown = false;
  bool json = false;
};

int say(const std::string& line, int status) {
  std::fputs(fmt::format("rooflined bench: {}\n", line).c_str(), stderr);
  return status;
}

// One line, the first failure of a model: they are all in the warnings, too.
std::string why_nothing(const BenchInput& input) {
  for (const BenchModel& model : input.models) {
    if (!model.failures.empty()) return fmt::format("nothing was measured: {}: {}", model.name, model.failures.front());
  }
  return "nothing was measured";
}

int bench(const Arguments& arguments) {
  BenchPlan plan = bench_plan(arguments.options);
  plan.folder = arguments.folder;
  int status = 0;
  const std::optional<BenchOutcome> outcome = run_bench_command(plan, "bench", status);
  if (!outcome) return status;
  const BenchDocument& document = outcome->document;
  print_bench(document, arguments.json       ? BenchFormat::kJson
                        : arguments.markdown ? BenchFormat::kMarkdown
                                             : BenchFormat::kTable);
  if (!plan.folder.empty()) {
    if (const Status written = write_bench_files(document, plan.folder); !written.ok()) {
      return say(written.error().message(), 2);
    }
  }
  if (outcome->interrupted) return say("interrupted; what was measured until then is kept", 130);
  status = bench_status(document);
  return status == 0 ? 0 : say(why_nothing(document.input), status);
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("bench", "Measure models with llama-bench, and what their decode makes of the memory");
  command->add_option("MODEL", arguments->options.plan.models, "GGUF files; two or more of different sizes for a fit")
      ->required();
  add_bench_options(*command, arguments->options);
  command->add_option("-o,--output", arguments->folder, "Folder for bench.json, bench.md and bench.svg");
  CLI::Option* const markdown = command->add_flag("--markdown", arguments->markdown, "Markdown on stdout");
  command->add_flag("--json", arguments->json, "One JSON object on stdout")->excludes(markdown);
  command->callback([arguments, &exit_status] { exit_status = bench(*arguments); });
}

}  // namespace rooflined::daemon
