#include "metrics/bench_analysis.h"

#include "metrics/bench_warnings.h"

#include <fmt/format.h>

#include <algorithm>

namespace rooflined {
namespace {

// Where the seeds draw the lines.
constexpr double kBound = 0.70;
constexpr double kPartlyBound = 0.40;

std::optional<double> kv_bytes_at(const BenchModel& model, unsigned depth) {
  for (const DepthBytes& one : model.kv) {
    if (one.depth == depth) return one.kv_bytes;
  }
  return std::nullopt;
}

unsigned smallest_depth(const BenchModel& model) {
  unsigned depth = model.runs.front().depth;
  for (const BenchRun& run : model.runs) depth = std::min(depth, run.depth);
  return depth;
}

// Weights alone with an empty cache, as in every published fit of this law; weights and cache at a depth.
std::optional<double> bytes_at(const BenchModel& model, unsigned depth) {
  if (!model.bytes || depth == 0) return model.bytes;
  const std::optional<double> kv = kv_bytes_at(model, depth);
  return kv ? std::optional<double>(*model.bytes + *kv) : std::nullopt;
}

std::vector<SweepPoint> sweep_at(const BenchModel& model, unsigned depth) {
  std::vector<SweepPoint> points;
  for (const BenchRun& run : model.runs) {
    if (run.depth == depth) points.push_back({run.threads, run.decode, run.prefill});
  }
  return points;
}

std::vector<DepthFigures> depth_figures(const BenchModel& model, unsigned first, unsigned threads) {
  std::vector<DepthFigures> all;
  for (const BenchRun& run : model.runs) {
    if (run.threads != threads || !run.decode) continue;
    DepthFigures one;
    one.depth = run.depth;
    one.threads = threads;
    one.decode = *run.decode;
    one.kv_bytes = kv_bytes_at(model, run.depth);
    if (const auto bytes = bytes_at(model, run.depth)) one.achieved = *run.decode * *bytes;
    all.push_back(one);
  }
  std::sort(all.begin(), all.end(), [](const DepthFigures& a, const DepthFigures& b) { return a.depth < b.depth; });
  if (all.size() < 2 || all.front().depth != first) return {};
  const std::optional<double> bytes_first = bytes_at(model, first);
  for (DepthFigures& one : all) {
    one.of_first = one.decode / all.front().decode;
    const std::optional<double> bytes = bytes_at(model, one.depth);
    if (bytes && bytes_first) one.of_first_by_bytes = *bytes_first / *bytes;
  }
  return all;
}

std::optional<ModelFigures> figures_of(const BenchInput& input, std::size_t at) {
  const BenchModel& model = input.models[at];
  if (model.runs.empty()) return std::nullopt;
  const unsigned depth = smallest_depth(model);
  ModelFigures figures;
  figures.model = at;
  figures.sweep = judge_sweep(sweep_at(model, depth));
  if (!figures.sweep.best_decode) return std::nullopt;
  const unsigned threads = figures.sweep.best_decode->threads;
  figures.decode = figures.sweep.best_decode->decode.value_or(0);
  for (const BenchRun& run : model.runs) {
    if (run.depth == depth && run.threads == threads) figures.decode_deviation = run.decode_deviation;
  }
  figures.bytes = bytes_at(model, depth);
  figures.depths = depth_figures(model, depth, threads);
  if (!figures.bytes) return figures;
  figures.achieved = figures.decode * *figures.bytes;
  // Weights on a GPU are not read from the memory that the ceiling is of.
  if (!input.ceiling || model.offloaded) return figures;
  figures.utilisation = *figures.achieved / *input.ceiling;
  figures.bound = *input.ceiling / *figures.bytes;
  return figures;
}

std::optional<Spread> spread_of(const std::vector<double>& values) {
  const std::optional<double> median = median_of(values);
  if (!median) return std::nullopt;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return Spread{*low, *median, *high};
}

std::string verdict_of(const Spread& utilisation) {
  if (utilisation.median >= kBound) return "memory-bound";
  return utilisation.median >= kPartlyBound ? "partly memory-bound" : "not memory-bound";
}

void compare_models(const BenchInput& input, BenchAnalysis& analysis) {
  std::vector<FitPoint> points;
  std::vector<double> utilisations, scalings;
  std::vector<unsigned> knees;
  for (const ModelFigures& model : analysis.models) {
    if (model.sweep.knee) knees.push_back(*model.sweep.knee);
    if (model.sweep.prefill_scaling) scalings.push_back(*model.sweep.prefill_scaling);
    if (!input.models[model.model].comparable()) continue;
    if (model.bytes) points.push_back({*model.bytes, model.decode});
    if (model.utilisation) utilisations.push_back(*model.utilisation);
  }
  analysis.fit = fit_bandwidth(points);
  analysis.utilisation = spread_of(utilisations);
  if (analysis.utilisation) analysis.verdict = verdict_of(*analysis.utilisation);
  analysis.knee = common_knee(knees);
  analysis.prefill_scaling = spread_of(scalings);
  if (points.size() < 2) return;
  const auto [small, large] = std::minmax_element(
      points.begin(), points.end(), [](const FitPoint& a, const FitPoint& b) { return a.bytes < b.bytes; });
  analysis.frontier = Frontier{large->bytes / small->bytes, small->tokens_per_second / large->tokens_per_second};
}

}  // namespace

BenchAnalysis analyse_bench(const BenchInput& input) {
  BenchAnalysis analysis;
  for (std::size_t at = 0; at < input.models.size(); ++at) {
    if (auto figures = figures_of(input, at)) analysis.models.push_back(std::move(*figures));
  }
  compare_models(input, analysis);
  analysis.warnings = bench_warnings(input, analysis);
  return analysis;
}

std::string utilisation_text(double utilisation, CeilingSource source) {
  if (utilisation <= 1) return fmt::format("{:.1f} %", 100 * utilisation);
  return source == CeilingSource::kSupplied ? "at or above the given ceiling" : "at or above the measured ceiling";
}

}  // namespace rooflined
