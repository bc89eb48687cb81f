// rooflined fit --from-metrics URL|FILE: the fit of a benchmark, from what the daemon saw of live traffic.

#include "daemon/bench_files.h"
#include "daemon/clock.h"
#include "daemon/live_fit.h"
#include "daemon/number_option.h"
#include "daemon/scrape_source.h"
#include "daemon/state_file.h"
#include "daemon/workbench_commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

namespace rooflined::daemon {
namespace {

struct Arguments {
  std::string from;
  std::string plot;
  double ceiling = 0;
  bool markdown = false;
  bool json = false;
};

int failed(const Error& error, int status) {
  std::fputs(fmt::format("rooflined fit: {}\n", error.message()).c_str(), stderr);
  return status;
}

Result<std::string> read_scrape(const std::string& from) {
  if (from.starts_with("http://") || from.starts_with("https://")) return fetch_scrape(from);
  return read_file(from, kScrapeBytesMax);
}

int fit(const Arguments& arguments) {
  const auto scrape = read_scrape(arguments.from);
  if (!scrape.ok()) return failed(scrape.error(), 2);
  auto input = live_fit_input(*scrape, arguments.from);
  if (!input.ok()) return failed(input.error(), 1);
  BenchDocument document;
  document.input = std::move(*input);
  if (arguments.ceiling > 0) {
    document.input.ceiling = arguments.ceiling;
    document.input.ceiling_source = CeilingSource::kSupplied;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wall_now().since_epoch());
  document.head = {{"schema_version", kBenchSchemaVersion},
                   {"tool_version", ROOFLINED_VERSION},
                   {"generated_utc", utc_text(seconds.count())},
                   {"from_metrics", arguments.from}};
  if (!arguments.plot.empty()) {
    if (const Status written = write_bench_plot(document, arguments.plot); !written.ok())
      return failed(written.error(), 2);
  }
  print_bench(document, arguments.json       ? BenchFormat::kJson
                        : arguments.markdown ? BenchFormat::kMarkdown
                                             : BenchFormat::kTable);
  if (analyse_bench(document.input).fit) return 0;
  return failed({ErrorCode::kNotFound, arguments.from, "no fit: two dense models with known bytes are needed"}, 1);
}

}  // namespace

void add_fit_command(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("fit", "The fit of bench, over the models that a running rooflined has seen");
  command->add_option("--from-metrics", arguments->from, "URL of its /metrics, or a file with what that said")
      ->required();
  command->add_option("--peak-bandwidth", arguments->ceiling, "Bytes per second of the memory, instead of the daemon's")
      ->check(number_between(1, 1e16));
  command->add_option("--plot", arguments->plot, "Write the picture (SVG) to this file");
  CLI::Option* const markdown = command->add_flag("--markdown", arguments->markdown, "Markdown on stdout");
  command->add_flag("--json", arguments->json, "One JSON object on stdout")->excludes(markdown);
  command->callback([arguments, &exit_status] { exit_status = fit(*arguments); });
}

}  // namespace rooflined::daemon
