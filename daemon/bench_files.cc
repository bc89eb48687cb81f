#include "daemon/bench_files.h"

#include "daemon/bench_plot.h"
#include "daemon/bench_report.h"
#include "daemon/state_file.h"

#include <fmt/format.h>

#include <filesystem>

namespace rooflined::daemon {
namespace {

std::string json_text(const BenchDocument& document) {
  return to_json(document).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Status write_bench_json(const BenchDocument& document, const std::string& path) {
  return replace_file(path, json_text(document));
}

Status write_bench_plot(const BenchDocument& document, const std::string& path) {
  const std::string picture = bench_plot(document.input, analyse_bench(document.input));
  if (picture.empty()) return Error{ErrorCode::kNotFound, path, "nothing to draw: no model has a speed and a size"};
  return replace_file(path, picture);
}

Status write_bench_files(const BenchDocument& document, const std::string& folder) {
  const std::filesystem::path into(folder);
  if (Status written = write_bench_json(document, into / "bench.json"); !written.ok()) return written;
  const BenchAnalysis analysis = analyse_bench(document.input);
  const std::string picture = bench_plot(document.input, analysis);
  if (!picture.empty()) {
    if (Status written = replace_file(into / "bench.svg", picture); !written.ok()) return written;
  }
  return replace_file(into / "bench.md", bench_markdown(document.input, analysis, picture.empty() ? "" : "bench.svg"));
}

void print_bench(const BenchDocument& document, BenchFormat format) {
  if (format == BenchFormat::kJson) {
    fmt::print("{}", json_text(document));
    return;
  }
  const BenchAnalysis analysis = analyse_bench(document.input);
  fmt::print("{}", format == BenchFormat::kMarkdown ? bench_markdown(document.input, analysis, "")
                                                    : bench_table(document.input, analysis));
}

int bench_status(const BenchDocument& document) {
  return analyse_bench(document.input).models.empty() ? 1 : 0;
}

}  // namespace rooflined::daemon
