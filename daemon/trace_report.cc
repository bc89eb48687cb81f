#include "daemon/trace_report.h"

#include "daemon/replay_report.h"
#include "metrics/base/utf8.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace rooflined::daemon {

class TraceReport::Engine final : public RecordObserver {
 public:
  void on_first_tokens(LineTime at, double tokens) override {
    sums.output_tokens += tokens;
    cover(at, at);
  }
  void on_interval(const IntervalRecord& record) override {
    latencies.on_interval(record);
    add(record);
    cover(record.a, record.b);
  }
  void on_correction(const IntervalRecord& record) override { add(record); }
  void on_time_to_first_token(LineTime at, Duration waited) override { latencies.on_time_to_first_token(at, waited); }

  EngineBooks::Settled sums;
  LatencyLog latencies;
  std::optional<LineTime> first;
  std::optional<LineTime> last;

 private:
  void add(const IntervalRecord& record) {
    sums.output_tokens += record.tokens;
    sums.decode_tokens += record.tokens;
    sums.passes += record.passes;
    sums.sequence_seconds += record.sequence_seconds;
    sums.busy_seconds += record.busy_seconds;
    sums.bytes_dense += record.weights.dense;
    sums.bytes_experts += record.weights.experts;
    sums.bytes_kv += record.kv_bytes;
    sums.context_sum += record.context_sum;
    if (!record.bytes_known) return;
    sums.bytes_known = true;
    sums.billed_busy_seconds += record.busy_seconds;
  }
  void cover(LineTime from, LineTime to) {
    first = std::min(first.value_or(from), from);
    last = std::max(last.value_or(to), to);
  }
};

TraceReport::TraceReport() = default;
TraceReport::~TraceReport() = default;

RecordObserver& TraceReport::engine(std::string_view name) {
  const std::string label = engines_.size() < kEnginesMax ? to_label(name) : "other";
  auto& engine = engines_[label];
  if (engine == nullptr) engine = std::make_unique<Engine>();
  return *engine;
}

nlohmann::json TraceReport::json(std::optional<BytesPerSecond> ceiling) const {
  nlohmann::json targets = nlohmann::json::array();
  for (const auto& [name, engine] : engines_) {
    if (!engine->first) continue;
    const double seconds = to_seconds(*engine->last - *engine->first);
    nlohmann::json target = figures_json(engine->sums, engine->latencies, seconds, ceiling);
    target["target"] = name;
    for (const char* unknown : {"server", "version", "model", "requests", "requests_aborted", "requests_failed",
                                "prompt_tokens", "token_source", "finished"}) {
      target[unknown] = nullptr;
    }
    target["caveats"] = nlohmann::json::array();
    targets.push_back(std::move(target));
  }
  return {{"capture", nullptr}, {"targets", std::move(targets)}};
}

}  // namespace rooflined::daemon
