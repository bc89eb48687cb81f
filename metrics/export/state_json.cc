#include "metrics/export/state_json.h"

#include "metrics/base/log.h"
#include "metrics/base/utf8.h"
#include "metrics/export/names.h"
#include "metrics/export/scrape.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <exception>
#include <span>

namespace rooflined::metrics_export {

namespace {

using nlohmann::json;

void put(json& object, const char* key, double value) {
  if (std::isfinite(value)) object[key] = value;
}
void put(json& object, const char* key, const std::optional<double>& value) {
  if (value) put(object, key, *value);
}
void put(json& object, const char* key, std::uint64_t value) {
  object[key] = value;
}
void put(json& object, const char* key, unsigned value) {
  object[key] = value;
}
void put(json& object, const char* key, std::uint16_t value) {
  object[key] = value;
}
void put(json& object, const char* key, bool value) {
  object[key] = value;
}
// Without this one a literal would become a bool.
void put(json& object, const char* key, const char* value) = delete;
void put(json& object, const char* key, const std::string& value) {
  object[key] = to_label(value);
}

template <typename Value, std::size_t kCount>
json by_name(const std::array<std::string_view, kCount>& names, const std::array<Value, kCount>& values) {
  json object = json::object();
  for (std::size_t i = 0; i < kCount; ++i) object[std::string(names[i])] = values[i];
  return object;
}

template <typename Value>
json by_reason(const std::map<std::string, Value>& values) {
  json object = json::object();
  for (const auto& [reason, value] : values) object[to_label(reason)] = value;
  return object;
}

json to_json(const HistogramSnapshot& histogram, std::span<const double> bounds) {
  json object = json::object();
  object["bounds"] = std::vector<double>(bounds.begin(), bounds.end());
  object["bucket_counts"] = histogram.bucket_counts;
  put(object, "count", histogram.count);
  put(object, "sum", histogram.sum);
  return object;
}

json to_json(const WindowSnapshot& window) {
  json object = json::object();
  put(object, "window", window.window);
  put(object, "tokens_per_second", window.tokens_per_second);
  put(object, "decode_busy_ratio", window.decode_busy_ratio);
  put(object, "decode_bandwidth_ratio", window.decode_bandwidth_ratio);
  put(object, "decode_bytes_per_second", window.decode_bytes_per_second);
  put(object, "mbu_ratio", window.mbu_ratio);
  put(object, "tokens_per_second_bound", window.tokens_per_second_bound);
  put(object, "batch_size", window.batch_size);
  put(object, "context_tokens", window.context_tokens);
  if (window.itl_seconds) {
    json& itl = object["itl_seconds"] = json::object();
    put(itl, "mean", window.itl_seconds->mean);
    put(itl, "p50", window.itl_seconds->p50);
    put(itl, "p95", window.itl_seconds->p95);
    put(itl, "p99", window.itl_seconds->p99);
  }
  return object;
}

json to_json(const GeometrySnapshot& geometry) {
  json object = json::object();
  put(object, "architecture", geometry.architecture);
  put(object, "source", geometry.source);
  put(object, "dense_bytes", geometry.dense_bytes);
  put(object, "expert_bytes_total", geometry.expert_bytes_total);
  put(object, "kv_bytes_per_token", geometry.kv_bytes_per_token);
  return object;
}

void put_target_counters(json& object, const TargetSnapshot& target) {
  put(object, "output_tokens", target.output_tokens);
  put(object, "prompt_tokens", target.prompt_tokens);
  put(object, "decode_tokens", target.decode_tokens);
  put(object, "decode_passes", target.decode_passes);
  put(object, "decode_sequence_seconds", target.decode_sequence_seconds);
  put(object, "decode_busy_seconds", target.decode_busy_seconds);
  put(object, "decode_prefill_overlap_seconds", target.decode_prefill_overlap_seconds);
  put(object, "decode_bytes_dense", target.decode_bytes_dense);
  put(object, "decode_bytes_experts", target.decode_bytes_experts);
  put(object, "decode_bytes_kv", target.decode_bytes_kv);
  put(object, "proxied_requests", target.proxied_requests);
  put(object, "proxied_tokens", target.proxied_tokens);
  object["requests"] = by_name(kOutcomeNames, target.requests);
  object["tokens_by_source"] = by_name(kTokenSourceNames, target.tokens_by_source);
  object["inter_token_latency"] = to_json(target.inter_token_latency, kTokenLatencyBounds);
  object["inter_event_latency"] = to_json(target.inter_event_latency, kTokenLatencyBounds);
  object["time_to_first_token"] = to_json(target.time_to_first_token, kRequestLatencyBounds);
  object["request_duration"] = to_json(target.request_duration, kRequestLatencyBounds);
  object["deploys_seen"] = by_name(kDeployCauseNames, target.deploys_seen);
  object["decode_exits"] = by_reason(target.decode_exits);
}

void put(json& object, const char* key, const std::optional<ChangeSnapshot>& change) {
  if (!change) return;
  json& out = object[key] = json::object();
  put(out, "ratio", change->ratio);
  put(out, "low", change->low);
  put(out, "high", change->high);
  put(out, "slices", change->slices);
  put(out, "against", change->against);
}

json to_json(const DeploySnapshot& deploy) {
  json object = json::object();
  put(object, "generation", deploy.generation);
  if (deploy.at) put(object, "timestamp", to_seconds(deploy.at->since_epoch()));
  if (!deploy.cause.empty()) put(object, "cause", deploy.cause);
  put(object, "version", deploy.version);
  put(object, "fingerprint", deploy.fingerprint);
  put(object, "ended", deploy.ended);
  put(object, "withheld", deploy.withheld);
  put(object, "mbu_change", deploy.mbu);
  put(object, "itl_change", deploy.itl);
  put(object, "rollback_mbu_change", deploy.rollback_mbu);
  put(object, "rollback_itl_change", deploy.rollback_itl);
  return object;
}

json to_json(const TargetSnapshot& target, const std::string& name, bool capture_up) {
  json object = json::object();
  put(object, "target", name);
  put(object, "server", target.server);
  put(object, "version", target.version);
  put(object, "model", target.model);
  put(object, "port", target.port);
  put(object, "memory", target.memory);
  put(object, "configured", target.configured);
  put(object, "replicas", target.replicas);
  put(object, "up", target.up);
  put(object, "role", std::string(target.proxy ? "proxy" : "engine"));
  if (target.proxy) put(object, "engine", target.engine);
  if (target.further) put(object, "further", true);
  if (target.retired) put(object, "retired", true);
  put_target_counters(object, target);
  json& deploys = object["deploys"] = json::array();
  for (const DeploySnapshot& deploy : target.deploys) deploys.push_back(to_json(deploy));
  if (!target.up || !capture_up) return object;
  put(object, "token_estimate_error_ratio", target.token_estimate_error);
  put(object, "active_sequences", target.active_sequences);
  put(object, "exchanges_in_flight", target.exchanges_in_flight);
  put(object, "bandwidth", target.bandwidth);
  if (target.bandwidth) put(object, "ceiling_exceeded", target.ceiling_exceeded);
  if (target.geometry) object["geometry"] = to_json(*target.geometry);
  json& caveats = object["caveats"] = json::array();
  for (const std::string& reason : target.caveats) caveats.push_back(to_label(reason));
  json& windows = object["windows"] = json::array();
  for (const WindowSnapshot& window : target.windows) windows.push_back(to_json(window));
  if (target.live) object["live"] = to_json(*target.live);
  return object;
}

json to_json(const CeilingCellSnapshot& cell) {
  json object = json::object();
  put(object, "kernel", cell.kernel);
  put(object, "threads", cell.threads);
  put(object, "best", cell.best);
  put(object, "median", cell.median);
  put(object, "stable", cell.stable);
  json& samples = object["samples"] = json::array();
  for (const BytesPerSecond sample : cell.samples) samples.push_back(sample);
  return object;
}

json to_json(const CeilingMeasurementSnapshot& last) {
  json object = json::object();
  put(object, "measured_at", to_seconds(last.measured_at.since_epoch()));
  put(object, "verdict", last.verdict);
  put(object, "working_set_bytes", last.working_set);
  json& cells = object["cells"] = json::array();
  for (const CeilingCellSnapshot& cell : last.cells) cells.push_back(to_json(cell));
  if (last.confirmation) object["confirmation"] = to_json(*last.confirmation);
  json& warnings = object["warnings"] = json::array();
  for (const std::string& warning : last.warnings) warnings.push_back(to_label(warning));
  return object;
}

json to_json(const CeilingSnapshot& ceiling) {
  json object = json::object();
  put(object, "source", ceiling.source);
  if (!ceiling.kernel.empty()) put(object, "kernel", ceiling.kernel);
  if (ceiling.threads != 0) put(object, "threads", ceiling.threads);
  put(object, "bytes_per_second", ceiling.bytes_per_second);
  put(object, "median_bytes_per_second", ceiling.median_bytes_per_second);
  put(object, "median_to_best", ceiling.median_to_best);
  put(object, "age_seconds", ceiling.age_seconds);
  if (ceiling.last_success) put(object, "last_success", to_seconds(ceiling.last_success->since_epoch()));
  if (ceiling.source == "measured") {
    put(object, "stable", ceiling.stable);
    put(object, "suspect", ceiling.suspect);
  }
  put(object, "stale", ceiling.stale);
  json& results = object["results"] = json::array();
  for (const CeilingResultSnapshot& result : ceiling.results) {
    json& out = results.emplace_back(json::object());
    put(out, "measured_at", to_seconds(result.measured_at.since_epoch()));
    put(out, "bytes_per_second", result.bytes_per_second);
    put(out, "kernel", result.kernel);
    put(out, "threads", result.threads);
  }
  return object;
}

json to_json(const CaptureSnapshot& capture) {
  json object = json::object();
  put(object, "interface", capture.interface);
  put(object, "packets", capture.packets);
  put(object, "dropped_packets", capture.dropped_packets);
  put(object, "bytes", capture.bytes);
  put(object, "gaps", capture.gaps);
  put(object, "missing_bytes", capture.missing_bytes);
  put(object, "flows", capture.flows);
  put(object, "clock_steps", capture.clock_steps);
  object["flows_ignored"] = by_reason(capture.flows_ignored);
  object["parse_errors"] = by_reason(capture.parse_errors);
  return object;
}

// One array a point, since a page of 32 targets takes 4,000 of them; null where there was no decode.
json to_json(const RecentPoint& point) {
  const auto rounded = [](const std::optional<double>& value, double per_unit) {
    return value && std::isfinite(*value) ? json(std::round(*value * per_unit) / per_unit) : json();
  };
  return json::array({rounded(point.at, 1), rounded(point.tokens_per_second, 100), rounded(point.itl_seconds, 1e5),
                      rounded(point.mbu_ratio, 1e4)});
}

json to_json(const Snapshot& snapshot) {
  const bool up = capture_is_up(snapshot);
  const std::vector<std::string> names = target_labels(snapshot);
  json object = json::object();
  put(object, "taken_at", to_seconds(snapshot.taken_at.since_epoch()));
  json& targets = object["targets"] = json::array();
  for (std::size_t i = 0; i < snapshot.targets.size(); ++i) {
    targets.push_back(to_json(snapshot.targets[i], names[i], up));
  }
  json& ratios = object["node_ratios"] = json::array();
  for (const NodeRatioSnapshot& node : snapshot.node_ratios) {
    if (!up) break;
    json& out = ratios.emplace_back(json::object());
    put(out, "window", node.window);
    put(out, "memory", node.memory);
    put(out, "ratio", node.ratio);
  }
  if (snapshot.ceiling) object["ceiling"] = to_json(*snapshot.ceiling);
  if (snapshot.ceiling_last) object["ceiling_last"] = to_json(*snapshot.ceiling_last);
  object["ceiling_measurements"] = by_name(kMeasurementNames, snapshot.ceiling_measurements);
  object["ceiling_abort_latency"] = to_json(snapshot.ceiling_abort_latency, kAbortLatencyBounds);
  if (snapshot.idle) put(object, "idle", *snapshot.idle);
  object["idle_blocked"] = by_reason(snapshot.idle_blocked);
  object["capture"] = to_json(snapshot.capture);
  json& collectors = object["collectors"] = json::array();
  for (const CollectorSnapshot& collector : snapshot.collectors) {
    json& out = collectors.emplace_back(json::object());
    put(out, "name", collector.name);
    put(out, "up", collector.up);
    put(out, "duration_seconds", collector.duration_seconds);
  }
  return object;
}

}  // namespace

std::string state_json(const Snapshot& snapshot, std::string_view version) {
  try {
    json state = to_json(snapshot);
    state["version"] = to_label(version);
    return state.dump();
  } catch (const std::exception& error) {
    log::error("the state could not be written as JSON: {}", error.what());
    return {};
  }
}

std::string history_json(const Snapshot& snapshot) {
  try {
    const std::vector<std::string> names = target_labels(snapshot);
    json object = json::object();
    object["fields"] = {"at", "tokens_per_second", "itl_seconds", "mbu_ratio"};
    json& targets = object["targets"] = json::object();
    for (std::size_t i = 0; i < snapshot.targets.size(); ++i) {
      const TargetSnapshot& target = snapshot.targets[i];
      if (target.recent == nullptr) continue;
      // As the page calls it.
      const std::string name = target.further ? names[i] + ' ' + to_label(target.model) : names[i];
      json& points = targets[name] = json::array();
      for (const RecentPoint& point : *target.recent) points.push_back(to_json(point));
    }
    return object.dump();
  } catch (const std::exception& error) {
    log::error("the history could not be written as JSON: {}", error.what());
    return {};
  }
}

}  // namespace rooflined::metrics_export
