#include "daemon/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace rooflined::daemon {
namespace {

constexpr double kFrontierShown = 1.05;
constexpr double kLossShown = 0.02;
constexpr double kScalingShown = 1.5;
constexpr double kNearTheCeiling = 0.80;
constexpr double kTight = 0.95;

using Row = std::vector<std::string>;
using Lines = std::vector<std::string>;

std::string or_dash(const std::optional<double>& value, std::string_view format, double scale = 1) {
  return value ? fmt::format(fmt::runtime(format), *value * scale) : "-";
}

std::string share_of_ceiling(const ModelFigures& figures) {
  if (!figures.utilisation) return "-";
  return *figures.utilisation > 1 ? "at or above" : fmt::format("{:.1f} %", 100 * *figures.utilisation);
}

std::string mark_of(const BenchModel& model) {
  if (model.moe) return model.name + " (MoE)";
  return model.offloaded ? model.name + " (GPU)" : model.name;
}

const Row kHeader = {"model",     "MB/token", "threads", "decode t/s",  "GB/s",       "of ceiling",
                     "bound t/s", "knee",     "loss",    "prefill t/s", "at threads", "scaling"};

Row row_of(const BenchInput& input, const ModelFigures& figures) {
  const SweepResult& sweep = figures.sweep;
  const auto& prefill = sweep.best_prefill;
  return {mark_of(input.models[figures.model]),
          or_dash(figures.bytes, "{:.1f}", 1e-6),
          sweep.best_decode ? std::to_string(sweep.best_decode->threads) : "-",
          fmt::format("{:.2f}", figures.decode),
          or_dash(figures.achieved, "{:.2f}", 1e-9),
          share_of_ceiling(figures),
          or_dash(figures.bound, "{:.1f}"),
          sweep.knee ? std::to_string(*sweep.knee) : "-",
          or_dash(sweep.loss_at_most_threads, "{:.1f} %", 100),
          prefill ? or_dash(prefill->prefill, "{:.1f}") : "-",
          prefill ? std::to_string(prefill->threads) : "-",
          or_dash(sweep.prefill_scaling, "{:.2f}")};
}

std::vector<Row> rows_of(const BenchInput& input, const BenchAnalysis& analysis) {
  std::vector<Row> rows;
  for (const ModelFigures& figures : analysis.models) rows.push_back(row_of(input, figures));
  return rows;
}

std::string ceiling_line(const BenchInput& input) {
  if (!input.ceiling) return "";
  return fmt::format("ceiling      {:.2f} GB/s, {}", *input.ceiling * 1e-9,
                     input.ceiling_source == CeilingSource::kMeasured
                         ? "measured now: a lower bound of what the memory can do"
                         : "given");
}

std::string fit_line(const BenchInput& input, const BandwidthFit& fit) {
  std::string line = fmt::format("fit          {:.2f} GB/s over {} models", fit.bandwidth * 1e-9, fit.points);
  if (fit.r_squared) {
    line += fmt::format(", R² {:.4f}{}", *fit.r_squared,
                        *fit.r_squared >= kTight && fit.points > 2 ? " (tight: bytes predict the speed)" : "");
  }
  if (input.ceiling && fit.bandwidth <= *input.ceiling) {
    line += fmt::format(", {:.1f} % of the ceiling", 100 * fit.bandwidth / *input.ceiling);
  }
  return line;
}

std::string verdict_line(const BenchInput& input, const BenchAnalysis& analysis) {
  if (!analysis.verdict || !analysis.utilisation) return "";
  const Spread& spread = *analysis.utilisation;
  const auto text = [&](double share) { return utilisation_text(share, input.ceiling_source); };
  std::string line = "decode       " + *analysis.verdict + ": ";
  if (spread.min == spread.max) {
    line += text(spread.median);
  } else {
    line += fmt::format("median {} (from {} to {})", text(spread.median), text(spread.min), text(spread.max));
  }
  return line;
}

std::string bytes_line(const BenchInput& input, const BenchAnalysis& analysis) {
  Lines sources;
  for (const ModelFigures& figures : analysis.models) {
    const std::string& source = input.models[figures.model].bytes_source;
    if (figures.bytes && std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
  }
  return sources.empty() ? "" : fmt::format("bytes        {}", fmt::join(sources, "; "));
}

void add_thread_lines(const BenchInput& input, const BenchAnalysis& analysis, Lines& lines) {
  if (analysis.knee)
    lines.push_back(fmt::format("threads      {} are enough for decode (within 2 % of the best)", *analysis.knee));
  std::optional<double> loss;
  std::string worst;
  for (const ModelFigures& figures : analysis.models) {
    if (figures.sweep.loss_at_most_threads.value_or(0) <= std::max(loss.value_or(0), kLossShown)) continue;
    loss = figures.sweep.loss_at_most_threads;
    worst = input.models[figures.model].name;
  }
  if (loss)
    lines.push_back(fmt::format("             the highest count costs up to {:.0f} % ({})", 100 * *loss, worst));
  if (analysis.prefill_scaling && analysis.prefill_scaling->median > kScalingShown) {
    const Spread& scaling = *analysis.prefill_scaling;
    lines.push_back(
        fmt::format("prefill      scales with threads: median {:.1f} times over the models ({:.1f} to {:.1f})",
                    scaling.median, scaling.min, scaling.max));
  }
}

// What follows from the figures, a line each.
Lines conclusions(const BenchInput& input, const BenchAnalysis& analysis) {
  Lines lines;
  const auto add = [&lines](std::string line) {
    if (!line.empty()) lines.push_back(std::move(line));
  };
  add(bytes_line(input, analysis));
  add(ceiling_line(input));
  if (analysis.fit) add(fit_line(input, *analysis.fit));
  add(verdict_line(input, analysis));
  if (analysis.utilisation && analysis.utilisation->median >= kNearTheCeiling) {
    add("             a faster processor will not help; fewer bytes or faster memory will");
  }
  if (analysis.frontier && analysis.frontier->size_ratio > kFrontierShown) {
    add(fmt::format("sizes        {:.2f} times the bytes are {:.2f} times slower", analysis.frontier->size_ratio,
                    analysis.frontier->speed_ratio));
  }
  add_thread_lines(input, analysis, lines);
  return lines;
}

std::string aligned(const Row& header, const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(header.size(), 0);
  const auto widen = [&](const Row& row) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  };
  widen(header);
  for (const Row& row : rows) widen(row);
  std::string text;
  const auto add = [&](const Row& row) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    text += line + "\n";
  };
  add(header);
  for (const Row& row : rows) add(row);
  return text;
}

std::string piped(const Row& header, const std::vector<Row>& rows) {
  const auto line = [](const Row& row) {
    std::string text = "|";
    for (std::string cell : row) {
      for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
      text += " " + cell + " |";
    }
    return text + "\n";
  };
  std::string text = line(header) + "|";
  for (std::size_t i = 0; i < header.size(); ++i) text += i == 0 ? " --- |" : " ---: |";
  text += "\n";
  for (const Row& row : rows) text += line(row);
  return text;
}

const Row kDepthHeader = {"depth", "decode t/s", "of first", "if bytes alone counted", "KV MB/token", "GB/s"};

std::vector<Row> depth_rows(const ModelFigures& figures) {
  std::vector<Row> rows;
  for (const DepthFigures& one : figures.depths) {
    rows.push_back({std::to_string(one.depth), fmt::format("{:.2f}", one.decode),
                    or_dash(one.of_first, "{:.0f} %", 100), or_dash(one.of_first_by_bytes, "{:.0f} %", 100),
                    or_dash(one.kv_bytes, "{:.1f}", 1e-6), or_dash(one.achieved, "{:.2f}", 1e-9)});
  }
  return rows;
}

}  // namespace

std::string bench_table(const BenchInput& input, const BenchAnalysis& analysis) {
  std::string text;
  if (!analysis.models.empty()) text += aligned(kHeader, rows_of(input, analysis)) + "\n";
  for (const ModelFigures& figures : analysis.models) {
    if (figures.depths.empty()) continue;
    text += fmt::format("{} with a filled cache, {} threads\n", input.models[figures.model].name,
                        figures.depths.front().threads);
    text += aligned(kDepthHeader, depth_rows(figures)) + "\n";
  }
  for (const std::string& line : conclusions(input, analysis)) text += line + "\n";
  for (const std::string& warning : analysis.warnings) text += "warning      " + warning + "\n";
  return text;
}

std::string bench_markdown(const BenchInput& input, const BenchAnalysis& analysis, const std::string& plot) {
  std::string text = "# Decode and memory bandwidth\n\n";
  if (!analysis.models.empty()) text += piped(kHeader, rows_of(input, analysis)) + "\n";
  for (const ModelFigures& figures : analysis.models) {
    if (figures.depths.empty()) continue;
    text += fmt::format("## {} with a filled cache, {} threads\n\n", input.models[figures.model].name,
                        figures.depths.front().threads);
    text += piped(kDepthHeader, depth_rows(figures)) + "\n";
  }
  for (const std::string& line : conclusions(input, analysis)) {
    const std::size_t words = line.find_first_not_of(' ', 12);
    const std::string topic = line.substr(0, line.find(' '));
    text += topic.empty() ? "- " + line.substr(words) + "\n" : fmt::format("- **{}**: {}\n", topic, line.substr(words));
  }
  if (!plot.empty()) text += fmt::format("\n![tokens per second against the bytes of a token]({})\n", plot);
  if (!analysis.warnings.empty()) text += "\n## Warnings\n\n";
  for (const std::string& warning : analysis.warnings) text += "- " + warning + "\n";
  return text;
}

}  // namespace rooflined::daemon
