#include "daemon/measurement_table.h"

#include <fmt/format.h>

#include <iterator>

namespace rooflined::daemon {
namespace {

double percent(BytesPerSecond median, BytesPerSecond best) {
  return best > 0 ? 100 * median / best : 0;
}

std::string working_set(const ceiling::Measurement& measured) {
  const auto size = static_cast<double>(measured.working_set);
  const auto llc = static_cast<double>(measured.llc.value_or(0));
  return fmt::format(
      "{:.2f} GB ({}), {}, {}", size * 1e-9,
      llc > 0 ? fmt::format("{:.1f} x the last-level caches of {:.0f} MiB", size / llc, llc / static_cast<double>(kMiB))
              : std::string("cache size unknown"),
      measured.huge_pages() ? "huge pages" : "small pages", measured.instruction_set);
}

std::string ceiling_of(const ceiling::Measurement& measured) {
  if (!measured.adoptable()) {
    return fmt::format("none: the measurement is {}", ceiling::verdict_name(measured.verdict));
  }
  const ceiling::MeasuredCell& winner = *measured.winner;
  return fmt::format("{}: {} with {} thread{}, median {} ({:.0f} % of the best) in {} fresh repetitions",
                     gigabytes_per_second(winner.best), winner.kernel, winner.threads, winner.threads == 1 ? "" : "s",
                     gigabytes_per_second(winner.median), percent(winner.median, winner.best), winner.samples.size());
}

}  // namespace

std::string gigabytes_per_second(BytesPerSecond rate) {
  return fmt::format("{:.2f} GB/s", rate * 1e-9);
}

std::string measurement_table(const ceiling::Measurement& measured) {
  std::string text = fmt::format("{:<20} {:>7} {:>11} {:>13} {:>12}\n", "kernel", "threads", "best GB/s", "median GB/s",
                                 "median/best");
  const auto out = std::back_inserter(text);
  for (const ceiling::MeasuredCell& cell : measured.cells) {
    const bool won =
        measured.winner && cell.kernel == measured.winner->kernel && cell.threads == measured.winner->threads;
    fmt::format_to(out, "{:<20} {:>7} {:>11.2f} {:>13.2f} {:>12.2f}{}{}\n", cell.kernel, cell.threads, cell.best * 1e-9,
                   cell.median * 1e-9, percent(cell.median, cell.best) / 100, cell.stable ? "" : "  unstable",
                   won ? "  <- chosen" : "");
  }
  fmt::format_to(out, "\nworking set  {}\n", working_set(measured));
  fmt::format_to(out, "ceiling      {}\n", ceiling_of(measured));
  for (const ceiling::NodeResult& node : measured.nodes) {
    fmt::format_to(out, "node {:<7} {} alone, median {} ({:.0f} % of the best){}\n", node.node,
                   gigabytes_per_second(node.best), gigabytes_per_second(node.median), percent(node.median, node.best),
                   node.stable ? "" : "  unstable");
  }
  fmt::format_to(out, "took         {:.1f} s\n", measured.duration_seconds);
  for (const std::string& warning : measured.warnings) fmt::format_to(out, "warning      {}\n", warning);
  return text;
}

}  // namespace rooflined::daemon
