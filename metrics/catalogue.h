// Every metric name that the daemon exports, with its type, unit, labels and help text, in the order of a scrape.
//
// The one place where names are written: the exporter takes them by MetricId, the README's table is printed from here
// by rooflined-catalogue. Names, types and labels are a contract with dashboards and alert rules. Thread rule:
// constants.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rooflined {

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };

// In the order of the catalogue.
enum class MetricId : std::uint8_t {
  kOutputTokens,
  kPromptTokens,
  kDecodeTokens,
  kDecodePasses,
  kDecodeSequenceSeconds,
  kDecodeBusySeconds,
  kDecodePrefillOverlapSeconds,
  kDecodeBytes,
  kRequests,
  kTokenSource,
  kSequenceExits,
  kInterTokenLatency,
  kInterEventLatency,
  kTimeToFirstToken,
  kRequestDuration,
  kTokensPerSecond,
  kTokensPerSecondBound,
  kMbuRatio,
  kDecodeBandwidthRatio,
  kDecodeBytesPerSecond,
  kBatchSize,
  kContextTokens,
  kDecodeBusyRatio,
  kItlSeconds,
  kNodeDecodeBandwidthRatio,
  kTargetBandwidth,
  kMbuCaveat,
  kTokenEstimateError,
  kActiveSequences,
  kExchangesInFlight,
  kCeilingExceeded,
  kTargetUp,
  kTargetConfigured,
  kTargetReplicas,
  kTargetInfo,
  kProxiedRequests,
  kProxiedTokens,
  kDeployInfo,
  kDeployTimestamp,
  kDeploys,
  kMbuDeployChange,
  kMbuDeployChangeBound,
  kItlDeployChange,
  kItlDeployChangeBound,
  kGeometryInfo,
  kCeilingBytesPerSecond,
  kCeilingMedianBytesPerSecond,
  kCeilingAgeSeconds,
  kCeilingStable,
  kCeilingSuspect,
  kCeilingStale,
  kCeilingMedianToBestRatio,
  kCeilingLastSuccess,
  kCeilingInfo,
  kCeilingMeasurements,
  kCeilingAbortLatency,
  kIdle,
  kIdleBlocked,
  kCapturePackets,
  kCaptureDroppedPackets,
  kCaptureBytes,
  kFlowsIgnored,
  kStreamGaps,
  kStreamMissingBytes,
  kParseErrors,
  kFlows,
  kClockSteps,
  kCollectorUp,
  kCollectorDuration,
  kWebConnectionsDropped,
  kBuildInfo,
  kProcessCpuSeconds,
  kProcessResidentMemory,
  kProcessVirtualMemory,
  kProcessOpenFds,
  kProcessMaxFds,
  kProcessStartTime,
  kCount,
};

struct MetricInfo {
  MetricId id;
  std::string_view name;
  MetricType type;
  std::string_view unit;  // as a person would say it
  std::string_view
      labels;             // names, comma-separated; a fixed set of values follows its name: "outcome=ok|aborted|error"
  std::string_view help;  // one sentence
  std::string_view absent;  // when the series is not exported
};

std::span<const MetricInfo> metric_catalogue();
// Requires: `id` is not kCount.
const MetricInfo& metric_info(MetricId id);
// "counter", "gauge", "histogram".
std::string_view metric_type_name(MetricType type);

}  // namespace rooflined
