// What the workbench reads of others: llama-bench's output, a stored benchmark, a scrape. All three parsers see each
// input; whatever they accept is analysed, drawn and written.

#include "daemon/bench_document.h"
#include "daemon/bench_plot.h"
#include "daemon/bench_report.h"
#include "daemon/live_fit.h"
#include "daemon/llama_bench.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

void show(const rooflined::BenchInput& input) {
  using namespace rooflined;
  const BenchAnalysis analysis = analyse_bench(input);
  daemon::bench_table(input, analysis);
  daemon::bench_markdown(input, analysis, "");
  daemon::bench_plot(input, analysis);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflined::daemon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto records = parse_llama_bench(text);
  if (records.ok() && !records->decode && !records->prefill) __builtin_trap();
  llama_bench_complaint(text);
  if (const auto live = live_fit_input(text, "scrape"); live.ok()) show(*live);
  const auto document = parse_bench_document(text, "file");
  if (!document.ok()) return 0;
  show(document->input);
  // What was accepted is written again, and that is accepted too.
  const std::string written = to_json(*document).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const auto again = parse_bench_document(written, "file");
  if (!again.ok() || again->input.models.size() != document->input.models.size()) __builtin_trap();
  return 0;
}
