#include "daemon/live_fit.h"

#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace rooflined::daemon {
namespace {

using Labels = std::map<std::string, std::string, std::less<>>;

// A rate over fewer passes is more start than decode.
constexpr double kPassesMin = 100;
constexpr double kBusySecondsMin = 0.01;
constexpr std::size_t kPointsMax = 10000;
constexpr double kValueMax = 1e24;  // bytes of a lifetime; what is more is not a counter of ours

struct Sample {
  std::string_view name;
  Labels labels;
  double value = 0;
};

// {name="value",…} from after the brace on; nothing where it does not end. Leaves `line` behind it.
std::optional<Labels> read_labels(std::string_view& line) {
  Labels labels;
  while (!line.empty() && line.front() != '}') {
    const std::size_t equals = line.find("=\"");
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string name(line.substr(0, equals));
    line.remove_prefix(equals + 2);
    std::string value;
    while (!line.empty() && line.front() != '"') {
      const bool escape = line.front() == '\\' && line.size() > 1;
      if (escape) line.remove_prefix(1);
      value.push_back(escape && line.front() == 'n' ? '\n' : line.front());
      line.remove_prefix(1);
    }
    if (line.empty()) return std::nullopt;
    line.remove_prefix(1);
    if (!line.empty() && line.front() == ',') line.remove_prefix(1);
    labels[name] = to_label(value);
  }
  if (line.empty()) return std::nullopt;
  line.remove_prefix(1);
  return labels;
}

std::optional<Sample> read_sample(std::string_view line) {
  Sample sample;
  const std::size_t end = line.find_first_of("{ ");
  if (end == std::string_view::npos || line.starts_with('#')) return std::nullopt;
  sample.name = line.substr(0, end);
  const bool labelled = line[end] == '{';
  line.remove_prefix(end + 1);
  if (labelled) {
    auto labels = read_labels(line);
    if (!labels) return std::nullopt;
    sample.labels = std::move(*labels);
  }
  const std::string text(line.substr(0, 64));
  char* rest = nullptr;
  sample.value = std::strtod(text.c_str(), &rest);
  if (rest == text.c_str() || !(sample.value >= 0 && sample.value <= kValueMax)) return std::nullopt;
  return sample;
}

struct LivePoint {
  double bytes = 0;
  double expert_bytes = 0;
  double passes = 0;
  double busy_seconds = 0;
};

struct LiveTarget {
  double replicas = 1;
  bool other_memory = false;  // or unknown which
  std::set<std::string> caveats;
};

class LiveFit {
 public:
  void take(const Sample& sample) {
    const std::string target = label(sample, "target");
    if (sample.name == "rooflined_ceiling_bytes_per_second") ceiling_ = sample.value;
    if (sample.name == "rooflined_ceiling_info") ceiling_source_ = label(sample, "source");
    if (target.empty()) return;
    if (sample.name == "rooflined_target_replicas" && sample.value >= 1) targets_[target].replicas = sample.value;
    if (sample.name == "rooflined_target_info" && label(sample, "memory") == "gpu")
      targets_[target].other_memory = true;
    if (sample.name == "rooflined_mbu_caveat" && sample.value > 0) take_caveat(target, label(sample, "reason"));
    if (!sample.name.starts_with("rooflined_decode_") || points_.size() >= kPointsMax) return;
    LivePoint& point = points_[{target, label(sample, "model")}];
    if (sample.name == "rooflined_decode_passes_total") point.passes = sample.value;
    if (sample.name == "rooflined_decode_busy_seconds_total") point.busy_seconds = sample.value;
    if (sample.name != "rooflined_decode_bytes_total") return;
    point.bytes += sample.value;
    if (label(sample, "component") == "experts") point.expert_bytes += sample.value;
  }

  BenchInput input() {
    BenchInput input;
    if (ceiling_ > 0) {
      input.ceiling = ceiling_;
      input.ceiling_source = ceiling_source_ == "configured" ? CeilingSource::kSupplied : CeilingSource::kMeasured;
      if (ceiling_source_ == "observed") {
        input.notes.emplace_back("the ceiling is the highest decode rate seen, not a measurement");
      }
    }
    for (const auto& [key, point] : points_) {
      const std::string name = key.second.empty() ? key.first : key.first + "/" + key.second;
      if (point.passes < kPassesMin || point.busy_seconds < kBusySecondsMin) {
        if (point.passes > 0)
          input.notes.push_back(fmt::format("{}: {:.0f} decode passes only, left out", name, point.passes));
        continue;
      }
      input.models.push_back(model(name, point, targets_[key.first]));
    }
    for (const auto& [name, target] : targets_) {
      if (!target.caveats.empty())
        input.notes.push_back(fmt::format("{}: caveats {}", name, fmt::join(target.caveats, ", ")));
    }
    return input;
  }

 private:
  static std::string label(const Sample& sample, std::string_view name) {
    const auto found = sample.labels.find(name);
    return found == sample.labels.end() ? "" : found->second;
  }

  void take_caveat(const std::string& target, const std::string& reason) {
    targets_[target].caveats.insert(reason);
    if (reason == "offload") targets_[target].other_memory = true;
  }

  static BenchModel model(const std::string& name, const LivePoint& point, const LiveTarget& target) {
    BenchModel model;
    model.name = name;
    model.moe = point.expert_bytes > 0;
    model.offloaded = target.other_memory;
    if (point.bytes >= 1) model.bytes = point.bytes / point.passes;
    model.bytes_source = "as the daemon counted them, cache included";
    BenchRun run;  // the thread count of a server is not known
    run.decode = point.passes * target.replicas / point.busy_seconds;
    model.runs.push_back(run);
    return model;
  }

  double ceiling_ = 0;
  std::string ceiling_source_;
  std::map<std::string, LiveTarget> targets_;
  std::map<std::pair<std::string, std::string>, LivePoint> points_;
};

}  // namespace

Result<BenchInput> live_fit_input(std::string_view scrape, const std::string& where) {
  LiveFit fit;
  while (!scrape.empty()) {
    const std::size_t end = std::min(scrape.find('\n'), scrape.size());
    if (const auto sample = read_sample(scrape.substr(0, end))) fit.take(*sample);
    scrape.remove_prefix(std::min(end + 1, scrape.size()));
  }
  BenchInput input = fit.input();
  if (input.models.empty()) {
    return Error{ErrorCode::kNotFound, where,
                 "no decode of any model in it (the /metrics of a rooflined that saw 100 decode passes "
                 "of a model was expected)"};
  }
  return input;
}

}  // namespace rooflined::daemon
