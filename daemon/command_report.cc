// rooflined report FILE: shows a benchmark that `rooflined bench` stored, and analyses it anew when asked.

#include "daemon/bench_files.h"
#include "daemon/clock.h"
#include "daemon/number_option.h"
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

using Json = nlohmann::ordered_json;

constexpr std::size_t kFileBytesMax = 64 * 1024 * 1024;

struct Arguments {
  std::string path;
  std::string plot;
  double ceiling = 0;
  bool reanalyze = false;
  bool markdown = false;
  bool json = false;
};

int failed(const Error& error) {
  std::fputs(fmt::format("rooflined report: {}\n", error.message()).c_str(), stderr);
  return 2;
}

// What is shown is always made from the runs. A stored analysis that says something else comes from another version.
void compare_with_stored(const Json& stored, const BenchDocument& document, const std::string& path) {
  if (stored.is_null() || stored == to_json(analyse_bench(document.input), document.input)) return;
  std::fputs(fmt::format("rooflined report: {}: its stored analysis differs from what this version makes of its runs, "
                         "which is shown; --reanalyze stores it\n",
                         path)
                 .c_str(),
             stderr);
}

int report(const Arguments& arguments) {
  const auto text = read_file(arguments.path, kFileBytesMax);
  if (!text.ok()) return failed(text.error());
  auto document = parse_bench_document(*text, arguments.path);
  if (!document.ok()) return failed(document.error());
  if (arguments.ceiling > 0) {
    document->input.ceiling = arguments.ceiling;
    document->input.ceiling_source = CeilingSource::kSupplied;
  }
  if (arguments.reanalyze) {
    document->head["reanalyzed_utc"] =
        utc_text(std::chrono::duration_cast<std::chrono::seconds>(wall_now().since_epoch()).count());
    document->head["reanalyzed_by"] = ROOFLINED_VERSION;
    if (const Status written = write_bench_json(*document, arguments.path); !written.ok())
      return failed(written.error());
  } else if (arguments.ceiling <= 0) {
    compare_with_stored(Json::parse(*text, nullptr, false).value("analysis", Json(nullptr)), *document, arguments.path);
  }
  if (!arguments.plot.empty()) {
    if (const Status written = write_bench_plot(*document, arguments.plot); !written.ok())
      return failed(written.error());
  }
  print_bench(*document, arguments.json       ? BenchFormat::kJson
                         : arguments.markdown ? BenchFormat::kMarkdown
                                              : BenchFormat::kTable);
  return bench_status(*document);
}

}  // namespace

void add_report_command(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* const command = app.add_subcommand("report", "Show a benchmark that bench stored");
  command->add_option("FILE", arguments->path, "bench.json of rooflined bench")->required();
  command->add_flag("--reanalyze", arguments->reanalyze,
                    "Make the analysis in FILE anew from the runs in it, which stay");
  command
      ->add_option("--peak-bandwidth", arguments->ceiling,
                   "Bytes per second of the memory, instead of the stored ceiling")
      ->check(number_between(1, 1e16));
  command->add_option("--plot", arguments->plot, "Write the picture (SVG) to this file");
  CLI::Option* const markdown = command->add_flag("--markdown", arguments->markdown, "Markdown on stdout");
  command->add_flag("--json", arguments->json, "One JSON object on stdout")->excludes(markdown);
  command->callback([arguments, &exit_status] { exit_status = report(*arguments); });
}

}  // namespace rooflined::daemon
