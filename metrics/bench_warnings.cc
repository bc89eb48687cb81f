#include "metrics/bench_warnings.h"

#include <fmt/format.h>

#include <functional>
#include <set>

namespace rooflined {
namespace {

constexpr double kPoorFit = 0.90;
constexpr std::size_t kPoorFitPoints = 3;
// llama-bench with an empty prompt once gave 2 tokens/s where 85 were right: no working engine makes so little of the
// memory with one sequence.
constexpr double kImplausible = 0.05;
constexpr double kUnsteady = 0.10;
constexpr double kCacheTimes = 4;

using Warnings = std::vector<std::string>;

std::string names_where(const BenchInput& input, const std::function<bool(const BenchModel&)>& wanted) {
  std::string names;
  for (const BenchModel& model : input.models) {
    if (wanted(model)) names += (names.empty() ? "" : ", ") + model.name;
  }
  return names;
}

void about_what_is_left_out(const BenchInput& input, Warnings& warnings) {
  const std::string moe = names_where(input, [](const BenchModel& model) { return model.moe; });
  if (!moe.empty()) {
    warnings.push_back(moe + ": mixture of experts, left out of the fit and of the utilisations over all models");
  }
  const std::string offloaded = names_where(input, [](const BenchModel& model) { return model.offloaded; });
  if (!offloaded.empty()) {
    warnings.push_back(offloaded + ": on a GPU, at least in part, left out: the ceiling is that of the RAM");
  }
  const std::string unknown = names_where(input, [](const BenchModel& model) { return !model.bytes; });
  if (!unknown.empty()) warnings.push_back(unknown + ": bytes per token unknown, left out of the fit");
}

void about_failures(const BenchInput& input, Warnings& warnings) {
  for (const BenchModel& model : input.models) {
    for (const std::string& failure : model.failures) warnings.push_back(model.name + ": " + failure);
  }
}

void about_the_fit(const BenchInput& input, const BenchAnalysis& analysis, Warnings& warnings) {
  if (analysis.models.empty()) {
    warnings.emplace_back("nothing was measured");
    return;
  }
  std::set<std::string> sources;
  for (const ModelFigures& figures : analysis.models) {
    const BenchModel& model = input.models[figures.model];
    if (model.comparable() && figures.bytes) sources.insert(model.bytes_source);
  }
  if (sources.size() > 1) {
    warnings.push_back(fmt::format("bytes per token are counted in different ways ({}): the fit mixes them",
                                   fmt::join(sources, ", ")));
  }
  if (!analysis.fit) {
    warnings.emplace_back("no fit: at least two dense models with known bytes are needed");
  } else if (!analysis.fit->r_squared) {
    warnings.emplace_back("all models are equally fast: how well the line fits cannot be told");
  } else if (analysis.fit->points >= kPoorFitPoints && *analysis.fit->r_squared < kPoorFit) {
    warnings.push_back(
        fmt::format("the fit is poor (R² {:.3f}, under {:.2f}): decode is not bound by memory alone here; usual causes "
                    "are too few threads, a busy machine, a clock that falls, formats with slow kernels",
                    *analysis.fit->r_squared, kPoorFit));
  }
}

void about_one(const BenchInput& input, const ModelFigures& figures, Warnings& warnings) {
  const BenchModel& model = input.models[figures.model];
  if (figures.utilisation && model.comparable() && *figures.utilisation < kImplausible) {
    warnings.push_back(
        fmt::format("{}: {:.2f} tokens/s are {:.1f} % of what the memory allows: look at the build "
                    "(a debug build, no SIMD), at swapping, and at what else runs",
                    model.name, figures.decode, 100 * *figures.utilisation));
  }
  if (figures.decode_deviation && *figures.decode_deviation > kUnsteady * figures.decode) {
    warnings.push_back(fmt::format("{}: decode is unsteady ({:.1f} ± {:.1f} tokens/s): something else used the machine",
                                   model.name, figures.decode, *figures.decode_deviation));
  }
  if (input.llc && figures.bytes && !model.offloaded &&
      *figures.bytes < kCacheTimes * static_cast<double>(*input.llc)) {
    warnings.push_back(
        fmt::format("{}: {:.0f} MB per token are under 4 x the caches ({:.0f} MB): partly served from "
                    "cache",
                    model.name, *figures.bytes / 1e6, static_cast<double>(*input.llc) / 1e6));
  }
}

void about_the_ceiling(const BenchInput& input, const BenchAnalysis& analysis, Warnings& warnings) {
  if (!input.ceiling) {
    warnings.emplace_back("no ceiling: utilisations are absent (--peak-bandwidth gives one)");
    return;
  }
  std::string above;
  for (const ModelFigures& figures : analysis.models) {
    if (!figures.utilisation || *figures.utilisation <= 1) continue;
    above += (above.empty() ? "" : ", ") + input.models[figures.model].name;
  }
  if (above.empty()) return;
  warnings.push_back(above + (input.ceiling_source == CeilingSource::kSupplied
                                  ? ": at or above the given ceiling, which is too low for this machine"
                                  : ": at or above the measured ceiling, which is a lower bound of what the memory can "
                                    "do: all utilisations are upper bounds"));
}

}  // namespace

std::vector<std::string> bench_warnings(const BenchInput& input, const BenchAnalysis& analysis) {
  Warnings warnings = input.notes;
  about_failures(input, warnings);
  about_what_is_left_out(input, warnings);
  about_the_fit(input, analysis, warnings);
  about_the_ceiling(input, analysis, warnings);
  for (const ModelFigures& figures : analysis.models) about_one(input, figures, warnings);
  return warnings;
}

}  // namespace rooflined
