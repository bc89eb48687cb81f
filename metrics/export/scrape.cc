#include "metrics/export/scrape.h"

#include "metrics/base/log.h"
#include "metrics/base/utf8.h"
#include "metrics/export/family_builder.h"
#include "metrics/export/names.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <exception>
#include <set>
#include <string_view>

namespace rooflined::metrics_export {

namespace {

using enum MetricId;

double as_gauge(bool value) {
  return value ? 1 : 0;
}
double as_number(std::uint64_t value) {
  return static_cast<double>(value);
}

void add_if(FamilyBuilder& out, MetricId id, FamilyBuilder::LabelValues labels, const std::optional<double>& value) {
  if (value) out.add(id, labels, *value);
}

void add_target_counters(FamilyBuilder& out, std::string_view name, const TargetSnapshot& target) {
  const std::string_view model = target.model;
  out.add(kOutputTokens, {name, model}, target.output_tokens);
  out.add(kPromptTokens, {name, model}, target.prompt_tokens);
  out.add(kDecodeTokens, {name, model}, target.decode_tokens);
  out.add(kDecodePasses, {name, model}, target.decode_passes);
  out.add(kDecodeSequenceSeconds, {name, model}, target.decode_sequence_seconds);
  out.add(kDecodeBusySeconds, {name, model}, target.decode_busy_seconds);
  out.add(kDecodePrefillOverlapSeconds, {name, model}, target.decode_prefill_overlap_seconds);
  out.add(kDecodeBytes, {name, model, "dense"}, target.decode_bytes_dense);
  out.add(kDecodeBytes, {name, model, "experts"}, target.decode_bytes_experts);
  out.add(kDecodeBytes, {name, model, "kv"}, target.decode_bytes_kv);
  for (std::size_t i = 0; i < kOutcomeNames.size(); ++i) {
    out.add(kRequests, {name, model, kOutcomeNames[i]}, as_number(target.requests[i]));
  }
  for (std::size_t i = 0; i < kTokenSourceNames.size(); ++i) {
    out.add(kTokenSource, {name, kTokenSourceNames[i]}, target.tokens_by_source[i]);
  }
  for (std::size_t i = 0; i < kDeployCauseNames.size(); ++i) {
    // The rare ones, when they happen: a target has to stay under 15 kB.
    const bool rare = kDeployCauseNames[i] == "marked" || kDeployCauseNames[i] == "machine";
    if (rare && target.deploys_seen[i] == 0) continue;
    out.add(kDeploys, {name, kDeployCauseNames[i]}, as_number(target.deploys_seen[i]));
  }
  for (const auto& [reason, count] : target.decode_exits) {
    out.add(kSequenceExits, {name, model, reason}, as_number(count));
  }
  if (target.proxied_requests > 0) {
    out.add(kProxiedRequests, {name}, as_number(target.proxied_requests));
    out.add(kProxiedTokens, {name}, as_number(target.proxied_tokens));
  }
  out.add_histogram(kInterTokenLatency, {name, model}, kTokenLatencyBounds, target.inter_token_latency);
  out.add_histogram(kInterEventLatency, {name, model}, kTokenLatencyBounds, target.inter_event_latency);
  out.add_histogram(kTimeToFirstToken, {name, model}, kRequestLatencyBounds, target.time_to_first_token);
  out.add_histogram(kRequestDuration, {name, model}, kRequestLatencyBounds, target.request_duration);
}

void add_window(FamilyBuilder& out, std::string_view name, std::string_view model, const WindowSnapshot& window) {
  const std::string_view span = window.window;
  out.add(kTokensPerSecond, {name, model, span}, window.tokens_per_second);
  out.add(kDecodeBusyRatio, {name, model, span}, window.decode_busy_ratio);
  add_if(out, kDecodeBandwidthRatio, {name, model, span}, window.decode_bandwidth_ratio);
  add_if(out, kDecodeBytesPerSecond, {name, model, span}, window.decode_bytes_per_second);
  add_if(out, kMbuRatio, {name, model, span}, window.mbu_ratio);
  add_if(out, kTokensPerSecondBound, {name, model, span}, window.tokens_per_second_bound);
  add_if(out, kBatchSize, {name, model, span}, window.batch_size);
  add_if(out, kContextTokens, {name, model, span}, window.context_tokens);
  if (window.itl_seconds) {
    out.add(kItlSeconds, {name, model, span, "mean"}, window.itl_seconds->mean);
    out.add(kItlSeconds, {name, model, span, "p50"}, window.itl_seconds->p50);
    out.add(kItlSeconds, {name, model, span, "p95"}, window.itl_seconds->p95);
    out.add(kItlSeconds, {name, model, span, "p99"}, window.itl_seconds->p99);
  }
}

void add_change(FamilyBuilder& out, MetricId ratio, MetricId bound, std::string_view name,
                const std::optional<ChangeSnapshot>& change) {
  if (!change) return;
  out.add(ratio, {name}, change->ratio);
  out.add(bound, {name, "low"}, change->low);
  out.add(bound, {name, "high"}, change->high);
}

void add_deploy(FamilyBuilder& out, std::string_view name, const TargetSnapshot& target) {
  if (target.deploys.empty()) return;
  const DeploySnapshot& deploy = target.deploys.back();
  out.add(kDeployInfo, {name, target.server, deploy.version, target.model, deploy.fingerprint}, 1);
  if (deploy.at) out.add(kDeployTimestamp, {name}, to_seconds(deploy.at->since_epoch()));
  if (deploy.ended || deploy.withheld) return;
  add_change(out, kMbuDeployChange, kMbuDeployChangeBound, name, deploy.mbu);
  add_change(out, kItlDeployChange, kItlDeployChangeBound, name, deploy.itl);
}

// Of all models of a target together.
struct TargetSums {
  std::uint64_t active_sequences = 0;
  std::uint64_t exchanges_in_flight = 0;
  bool ceiling_exceeded = false;
};

// The target at `i` and the models behind it that are also its.
TargetSums target_sums(const std::vector<TargetSnapshot>& targets, std::size_t i) {
  TargetSums sums;
  do {
    sums.active_sequences += targets[i].active_sequences;
    sums.exchanges_in_flight += targets[i].exchanges_in_flight;
    sums.ceiling_exceeded = sums.ceiling_exceeded || targets[i].ceiling_exceeded;
  } while (++i < targets.size() && targets[i].further);
  return sums;
}

// Requires: the target is up and the capture too.
void add_target_gauges(FamilyBuilder& out, std::string_view name, const TargetSnapshot& target,
                       const TargetSums& sums) {
  out.add(kTargetInfo, {name, target.server, target.proxy ? "proxy" : "engine", target.engine, target.memory}, 1);
  out.add(kTargetReplicas, {name}, target.replicas);
  add_if(out, kTokenEstimateError, {name}, target.token_estimate_error);
  out.add(kActiveSequences, {name}, as_number(sums.active_sequences));
  out.add(kExchangesInFlight, {name}, as_number(sums.exchanges_in_flight));
  if (target.bandwidth) {
    out.add(kTargetBandwidth, {name}, *target.bandwidth);
    out.add(kCeilingExceeded, {name}, as_gauge(sums.ceiling_exceeded));
  }
  add_deploy(out, name, target);
}

// Likewise; what is of one model, and caveats, which any of them may have.
void add_model_gauges(FamilyBuilder& out, std::string_view name, const TargetSnapshot& target) {
  for (const std::string& reason : target.caveats) out.add(kMbuCaveat, {name, reason}, 1);
  if (target.geometry) {
    out.add(kGeometryInfo, {name, target.model, target.geometry->architecture, target.geometry->source}, 1);
  }
  for (const WindowSnapshot& window : target.windows) add_window(out, name, target.model, window);
}

void add_ceiling(FamilyBuilder& out, const CeilingSnapshot& ceiling) {
  out.add(kCeilingBytesPerSecond, {}, ceiling.bytes_per_second);
  out.add(kCeilingStale, {}, as_gauge(ceiling.stale));
  out.add(kCeilingInfo, {ceiling.source, ceiling.kernel, ceiling.threads == 0 ? "" : std::to_string(ceiling.threads)},
          1);
  add_if(out, kCeilingMedianBytesPerSecond, {}, ceiling.median_bytes_per_second);
  add_if(out, kCeilingMedianToBestRatio, {}, ceiling.median_to_best);
  add_if(out, kCeilingAgeSeconds, {}, ceiling.age_seconds);
  if (ceiling.last_success) out.add(kCeilingLastSuccess, {}, to_seconds(ceiling.last_success->since_epoch()));
  if (ceiling.source == "measured") {
    out.add(kCeilingStable, {}, as_gauge(ceiling.stable));
    out.add(kCeilingSuspect, {}, as_gauge(ceiling.suspect));
  }
}

void add_capture(FamilyBuilder& out, const CaptureSnapshot& capture, bool up) {
  const std::string_view interface = capture.interface;
  out.add(kCapturePackets, {interface}, as_number(capture.packets));
  out.add(kCaptureDroppedPackets, {interface}, as_number(capture.dropped_packets));
  out.add(kCaptureBytes, {interface}, as_number(capture.bytes));
  out.add(kStreamGaps, {interface}, as_number(capture.gaps));
  out.add(kStreamMissingBytes, {interface}, as_number(capture.missing_bytes));
  out.add(kClockSteps, {interface}, as_number(capture.clock_steps));
  if (up) out.add(kFlows, {interface}, as_number(capture.flows));
  for (const auto& [reason, count] : capture.flows_ignored)
    out.add(kFlowsIgnored, {interface, reason}, as_number(count));
  for (const auto& [reason, count] : capture.parse_errors) out.add(kParseErrors, {interface, reason}, as_number(count));
}

void add_snapshot(FamilyBuilder& out, const Snapshot& snapshot) {
  const bool up = capture_is_up(snapshot);
  const std::vector<std::string> names = target_labels(snapshot);
  for (std::size_t i = 0; i < snapshot.targets.size(); ++i) {
    const TargetSnapshot& target = snapshot.targets[i];
    add_target_counters(out, names[i], target);
    out.add(kTargetUp, {names[i]}, as_gauge(target.up));
    if (target.configured) out.add(kTargetConfigured, {names[i]}, 1);
    if (!up || !target.up) continue;
    if (!target.further) add_target_gauges(out, names[i], target, target_sums(snapshot.targets, i));
    add_model_gauges(out, names[i], target);
  }
  if (up) {
    for (const NodeRatioSnapshot& node : snapshot.node_ratios) {
      out.add(kNodeDecodeBandwidthRatio, {node.window, node.memory}, node.ratio);
    }
  }
  if (snapshot.ceiling) add_ceiling(out, *snapshot.ceiling);
  for (std::size_t i = 0; i < kMeasurementNames.size(); ++i) {
    out.add(kCeilingMeasurements, {kMeasurementNames[i]}, as_number(snapshot.ceiling_measurements[i]));
  }
  out.add_histogram(kCeilingAbortLatency, {}, kAbortLatencyBounds, snapshot.ceiling_abort_latency);
  if (snapshot.idle) out.add(kIdle, {}, as_gauge(*snapshot.idle));
  for (const auto& [reason, blocks] : snapshot.idle_blocked) out.add(kIdleBlocked, {reason}, as_gauge(blocks));
  add_capture(out, snapshot.capture, up);
  for (const CollectorSnapshot& collector : snapshot.collectors) {
    out.add(kCollectorUp, {collector.name}, as_gauge(collector.up));
    out.add(kCollectorDuration, {collector.name}, collector.duration_seconds);
  }
}

void add_extras(FamilyBuilder& out, const ScrapeExtras& extras) {
  out.add(kWebConnectionsDropped, {"timeout"}, as_number(extras.web.timeout));
  out.add(kWebConnectionsDropped, {"limit"}, as_number(extras.web.limit));
  out.add(kWebConnectionsDropped, {"too_large"}, as_number(extras.web.too_large));
  out.add(kBuildInfo, {extras.version}, 1);
  add_if(out, kProcessCpuSeconds, {}, extras.process.cpu_seconds);
  add_if(out, kProcessResidentMemory, {}, extras.process.resident_bytes);
  add_if(out, kProcessVirtualMemory, {}, extras.process.virtual_bytes);
  add_if(out, kProcessOpenFds, {}, extras.process.open_fds);
  add_if(out, kProcessMaxFds, {}, extras.process.max_fds);
  add_if(out, kProcessStartTime, {}, extras.process.start_time_seconds);
}

}  // namespace

bool capture_is_up(const Snapshot& snapshot) {
  return std::none_of(snapshot.collectors.begin(), snapshot.collectors.end(),
                      [](const CollectorSnapshot& collector) { return collector.name == "tap" && !collector.up; });
}

std::vector<std::string> target_labels(const Snapshot& snapshot) {
  std::vector<std::string> labels;
  std::set<std::string> taken;
  for (const TargetSnapshot& target : snapshot.targets) {
    const std::string label = to_label(target.target);
    if (target.further && !labels.empty()) {
      labels.push_back(labels.back());
      continue;
    }
    std::string unique = label;
    for (int number = 2; !taken.insert(unique).second; ++number) unique = label + "-" + std::to_string(number);
    labels.push_back(unique);
  }
  return labels;
}

std::vector<prometheus::MetricFamily> metric_families(const Snapshot* snapshot, const ScrapeExtras& extras) {
  FamilyBuilder out;
  if (snapshot != nullptr) add_snapshot(out, *snapshot);
  add_extras(out, extras);
  return out.take();
}

std::string prometheus_text(const std::vector<prometheus::MetricFamily>& families) {
  try {
    return prometheus::TextSerializer().Serialize(families);
  } catch (const std::exception& error) {
    log::error("the metrics could not be written as text: {}", error.what());
    return {};
  }
}

}  // namespace rooflined::metrics_export
