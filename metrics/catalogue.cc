#include "metrics/catalogue.h"

#include "metrics/base/result.h"

#include <array>

namespace rooflined {

namespace {

using enum MetricType;
using enum MetricId;

constexpr std::string_view kTargetModel = "target,model";
constexpr std::string_view kTargetModelWindow = "target,model,window";
constexpr std::string_view kNever = "never";
constexpr std::string_view kNoTarget = "an hour after the target has gone";
constexpr std::string_view kNotCompared =
    "no deploy yet, too little decode before or since, accepted, a day after the deploy, or target gone";
constexpr std::string_view kGone = "target gone, or the capture is down";
constexpr std::string_view kNoDecode = "no decode in the window, target gone, or the capture is down";
constexpr std::string_view kNoCeiling = "no ceiling is adopted";

constexpr std::size_t kMetricCount = static_cast<std::size_t>(kCount);

constexpr std::array<MetricInfo, kMetricCount> kCatalogue = {{
    {kOutputTokens, "rooflined_output_tokens_total", kCounter, "tokens", kTargetModel,
     "Tokens that the engine generated, first tokens included.", kNoTarget},
    {kPromptTokens, "rooflined_prompt_tokens_total", kCounter, "tokens", kTargetModel,
     "Prompt tokens of the requests, cached ones included.", kNoTarget},
    {kDecodeTokens, "rooflined_decode_tokens_total", kCounter, "tokens", kTargetModel,
     "Tokens that a decode pass produced: output tokens without the first of each sequence.", kNoTarget},
    {kDecodePasses, "rooflined_decode_passes_total", kCounter, "passes", kTargetModel,
     "Decode passes: the weights were read once for all sequences in the pass.", kNoTarget},
    {kDecodeSequenceSeconds, "rooflined_decode_sequence_seconds_total", kCounter, "sequence-seconds", kTargetModel,
     "Time spent in decode, summed over sequences.", kNoTarget},
    {kDecodeBusySeconds, "rooflined_decode_busy_seconds_total", kCounter, "replica-seconds", kTargetModel,
     "Time with at least one sequence in decode, summed over replicas.", kNoTarget},
    {kDecodePrefillOverlapSeconds, "rooflined_decode_prefill_overlap_seconds_total", kCounter, "replica-seconds",
     kTargetModel, "The part of the busy time during which another request waited for its first token.", kNoTarget},
    {kDecodeBytes, "rooflined_decode_bytes_total", kCounter, "bytes", "target,model,component=dense|experts|kv",
     "Bytes that the decode passes had to read from memory: dense weights, experts, KV cache.", kNoTarget},
    {kRequests, "rooflined_requests_total", kCounter, "requests", "target,model,outcome=ok|aborted|error",
     "Requests that ended on a generation route.", kNoTarget},
    {kTokenSource, "rooflined_token_source_total", kCounter, "tokens", "target,source=exact_live|exact_final|estimated",
     "Output tokens by how their number was known.", kNoTarget},
    {kSequenceExits, "rooflined_sequence_exits_total", kCounter, "sequences", "target,model,reason",
     "Times a sequence left decode in another way than by its end, and events that came too late.",
     "that reason has not occurred"},
    {kInterTokenLatency, "rooflined_inter_token_latency_seconds", kHistogram, "seconds", kTargetModel,
     "Time between two tokens of a sequence.", kNoTarget},
    {kInterEventLatency, "rooflined_inter_event_latency_seconds", kHistogram, "seconds", kTargetModel,
     "Time between two token events of a sequence on the wire, whatever number of tokens they hold.", kNoTarget},
    {kTimeToFirstToken, "rooflined_time_to_first_token_seconds", kHistogram, "seconds", kTargetModel,
     "Time from the last byte of a request to the first token of its response.", kNoTarget},
    {kRequestDuration, "rooflined_request_duration_seconds", kHistogram, "seconds", kTargetModel,
     "Time from the last byte of a request to the end of its response.", kNoTarget},
    {kTokensPerSecond, "rooflined_tokens_per_second", kGauge, "tokens/s", kTargetModelWindow,
     "Output tokens per second over the window.", kGone},
    {kTokensPerSecondBound, "rooflined_tokens_per_second_bound", kGauge, "tokens/s", kTargetModelWindow,
     "Tokens per second that the memory bandwidth would allow at the batch and context of the window.",
     "bandwidth or geometry unknown, or no decode in the window"},
    {kMbuRatio, "rooflined_mbu_ratio", kGauge, "ratio", kTargetModelWindow,
     "Memory-bandwidth utilisation while decoding: bytes that had to be read over busy time and bandwidth.",
     "bandwidth or geometry unknown, or no decode in the window"},
    {kDecodeBandwidthRatio, "rooflined_decode_bandwidth_ratio", kGauge, "ratio", kTargetModelWindow,
     "Bytes that decode had to read per second of wall-clock time, over the bandwidth.",
     "bandwidth or geometry unknown, or learned after decode in the window"},
    {kDecodeBytesPerSecond, "rooflined_decode_bytes_per_second", kGauge, "bytes/s", kTargetModelWindow,
     "Bytes that decode had to read per second of wall-clock time.",
     "geometry unknown, or learned after decode in the window"},
    {kBatchSize, "rooflined_batch_size", kGauge, "sequences", kTargetModelWindow,
     "Mean number of sequences in a decode pass.", kNoDecode},
    {kContextTokens, "rooflined_context_tokens", kGauge, "tokens", kTargetModelWindow,
     "Mean context that a token's attention read.", kNoDecode},
    {kDecodeBusyRatio, "rooflined_decode_busy_ratio", kGauge, "ratio", kTargetModelWindow,
     "Share of the window with at least one sequence in decode.", kGone},
    {kItlSeconds, "rooflined_itl_seconds", kGauge, "seconds", "target,model,window,stat=mean|p50|p95|p99",
     "Inter-token latency over the window.", kNoDecode},
    {kNodeDecodeBandwidthRatio, "rooflined_node_decode_bandwidth_ratio", kGauge, "ratio", "window,memory=ram|gpu",
     "Decode bandwidth ratio of all targets on the same memory together.",
     "no target with known bandwidth on that memory"},
    {kTargetBandwidth, "rooflined_target_bandwidth_bytes_per_second", kGauge, "bytes/s", "target",
     "Memory bandwidth that the ratios of this target are taken against.", "bandwidth unknown"},
    {kMbuCaveat, "rooflined_mbu_caveat", kGauge, "1", "target,reason", "A reason to doubt the figures of this target.",
     "the reason does not apply"},
    {kTokenEstimateError, "rooflined_token_estimate_error_ratio", kGauge, "ratio", "target",
     "Mean relative error of what text and frames say of an answer's tokens, against the totals reported of late.",
     "no total was reported yet"},
    {kActiveSequences, "rooflined_active_sequences", kGauge, "sequences", "target", "Sequences in decode now.", kGone},
    {kExchangesInFlight, "rooflined_exchanges_in_flight", kGauge, "exchanges", "target",
     "Requests whose response has not ended.", kGone},
    {kCeilingExceeded, "rooflined_ceiling_exceeded", kGauge, "0 or 1", "target",
     "1 while MBU is above 1: decode reads at or above the measured ceiling.", "bandwidth unknown"},
    {kTargetUp, "rooflined_target_up", kGauge, "0 or 1", "target", "1 while the engine's listener is there.",
     kNoTarget},
    {kTargetConfigured, "rooflined_target_configured", kGauge, "1", "target",
     "The settings name this target, so that it is meant to be there.",
     "the target appeared by itself, or an hour after it has gone"},
    {kTargetReplicas, "rooflined_target_replicas", kGauge, "replicas", "target",
     "Decode batches in flight behind the port: engines times pipeline stages.", kGone},
    {kTargetInfo, "rooflined_target_info", kGauge, "1", "target,server,role=engine|proxy,engine,memory=ram|gpu",
     "What the target is. A proxy passes on the streams of the target in the label engine, and they count there only. "
     "The memory is the one that its weights are read from.",
     kGone},
    {kProxiedRequests, "rooflined_proxied_requests_total", kCounter, "requests", "target",
     "Requests that the target passed on to another target; they are in no other series of it.",
     "it has never passed one on"},
    {kProxiedTokens, "rooflined_proxied_tokens_total", kCounter, "tokens", "target",
     "Output tokens of those requests, as seen; they are in no other series of the target.",
     "it has never passed one on"},
    {kDeployInfo, "rooflined_deploy_info", kGauge, "1", "target,server,version,model,fingerprint",
     "What runs there. The fingerprint is equal on nodes that serve the same model with the same build and settings.",
     kGone},
    {kDeployTimestamp, "rooflined_deploy_timestamp_seconds", kGauge, "seconds since 1970", "target",
     "When the last deploy was: a restart, another version, model or settings, or a mark.",
     "no deploy was seen since the target was first known, or target gone"},
    {kDeploys, "rooflined_deploys_total", kCounter, "deploys",
     "target,cause=restart|version|model|settings|marked|machine",
     "Deploys by what they changed; machine: the memory changed at one, not the server.",
     "an hour after the target has gone; marked, machine: none yet"},
    {kMbuDeployChange, "rooflined_mbu_deploy_change_ratio", kGauge, "ratio", "target",
     "Bytes per second of a decode pass after the last deploy over before, at like batch and context: what the deploy "
     "did "
     "to MBU.",
     kNotCompared},
    {kMbuDeployChangeBound, "rooflined_mbu_deploy_change_ratio_bound", kGauge, "ratio", "target,bound=low|high",
     "Bounds of that change: the true one is outside in one case of a hundred.", kNotCompared},
    {kItlDeployChange, "rooflined_itl_deploy_change_ratio", kGauge, "ratio", "target",
     "Inter-token latency after the last deploy over before, at like batch and context.", kNotCompared},
    {kItlDeployChangeBound, "rooflined_itl_deploy_change_ratio_bound", kGauge, "ratio", "target,bound=low|high",
     "Bounds of that change: the true one is outside in one case of a hundred.", kNotCompared},
    {kGeometryInfo, "rooflined_geometry_info", kGauge, "1",
     "target,model,architecture,source=settings|file|server|catalogue", "Where the model's shape is known from.",
     "geometry unknown"},
    {kCeilingBytesPerSecond, "rooflined_ceiling_bytes_per_second", kGauge, "bytes/s", "",
     "Adopted ceiling: the highest read bandwidth that this host's memory sustained.", kNoCeiling},
    {kCeilingMedianBytesPerSecond, "rooflined_ceiling_median_bytes_per_second", kGauge, "bytes/s", "",
     "Median of the repetitions that confirmed the ceiling.", "the ceiling was not measured"},
    {kCeilingAgeSeconds, "rooflined_ceiling_age_seconds", kGauge, "seconds", "",
     "Time since the adopted ceiling was measured.", "the ceiling was not measured"},
    {kCeilingStable, "rooflined_ceiling_stable", kGauge, "0 or 1", "",
     "1 if the last measurement was stable: median at least 0.75 of the best.", "the ceiling was not measured"},
    {kCeilingSuspect, "rooflined_ceiling_suspect", kGauge, "0 or 1", "",
     "1 if the last result is far from the adopted ceiling, or is the only one: it waits for a second that agrees.",
     "the ceiling was not measured"},
    {kCeilingStale, "rooflined_ceiling_stale", kGauge, "0 or 1", "", "1 if the ceiling is older than max_age.",
     kNoCeiling},
    {kCeilingMedianToBestRatio, "rooflined_ceiling_median_to_best_ratio", kGauge, "ratio", "",
     "Median over best of the repetitions that confirmed the ceiling.", "the ceiling was not measured"},
    {kCeilingLastSuccess, "rooflined_ceiling_last_success_timestamp_seconds", kGauge, "seconds since 1970", "",
     "When the last ceiling was adopted.", "the ceiling was not measured"},
    {kCeilingInfo, "rooflined_ceiling_info", kGauge, "1", "source=measured|configured|observed,kernel,threads",
     "Where the ceiling comes from.", kNoCeiling},
    {kCeilingMeasurements, "rooflined_ceiling_measurements_total", kCounter, "measurements",
     "result=adopted|unstable|suspect|aborted", "Ceiling measurements by their result.", kNever},
    {kCeilingAbortLatency, "rooflined_ceiling_abort_latency_seconds", kHistogram, "seconds", "",
     "From the first packet of a request that ends a measurement to the last memory access of the measurement.",
     kNever},
    {kIdle, "rooflined_idle", kGauge, "0 or 1", "", "1 in an idle window, in which the ceiling may be measured.",
     "nothing waits for an idle window"},
    {kIdleBlocked, "rooflined_idle_blocked", kGauge, "0 or 1", "reason",
     "1 while this reason keeps the host from being idle: capture, requests, cpu, load, pressure, memory, contended.",
     "the reason is not watched"},
    {kCapturePackets, "rooflined_capture_packets_total", kCounter, "packets", "interface",
     "Packets that the tap received.", kNever},
    {kCaptureDroppedPackets, "rooflined_capture_dropped_packets_total", kCounter, "packets", "interface",
     "Packets that the kernel dropped because the tap did not keep up.", kNever},
    {kCaptureBytes, "rooflined_capture_bytes_total", kCounter, "bytes", "interface",
     "Bytes of the packets that the tap received.", kNever},
    {kFlowsIgnored, "rooflined_flows_ignored_total", kCounter, "flows", "interface,reason",
     "Connections that the tap does not follow.", "that reason has not occurred"},
    {kStreamGaps, "rooflined_stream_gaps_total", kCounter, "gaps", "interface",
     "Places where bytes of a stream are missing.", kNever},
    {kStreamMissingBytes, "rooflined_stream_missing_bytes_total", kCounter, "bytes", "interface",
     "Bytes of streams that are known to be missing.", kNever},
    {kParseErrors, "rooflined_parse_errors_total", kCounter, "errors", "interface,reason",
     "Bytes on the wire that could not be understood.", "that reason has not occurred"},
    {kFlows, "rooflined_flows", kGauge, "flows", "interface", "Connections that the tap follows now.",
     "the capture is down"},
    {kClockSteps, "rooflined_clock_steps_total", kCounter, "steps", "interface",
     "Steps of the wall clock that the tap evened out.", kNever},
    {kCollectorUp, "rooflined_collector_up", kGauge, "0 or 1", "collector", "1 if the collector's last update worked.",
     "the collector is not started"},
    {kCollectorDuration, "rooflined_collector_duration_seconds", kGauge, "seconds", "collector",
     "Time that the collector's last update took.", "the collector is not started"},
    {kWebConnectionsDropped, "rooflined_web_connections_dropped_total", kCounter, "connections",
     "reason=timeout|limit|too_large",
     "Connections to this endpoint that were closed on a limit of time, number or size.", kNever},
    {kBuildInfo, "rooflined_build_info", kGauge, "1", "version", "The running version.", kNever},
    {kProcessCpuSeconds, "process_cpu_seconds_total", kCounter, "seconds", "",
     "User and system CPU time of the daemon.", "/proc is unreadable"},
    {kProcessResidentMemory, "process_resident_memory_bytes", kGauge, "bytes", "", "Resident memory of the daemon.",
     "/proc is unreadable"},
    {kProcessVirtualMemory, "process_virtual_memory_bytes", kGauge, "bytes", "", "Virtual memory of the daemon.",
     "/proc is unreadable"},
    {kProcessOpenFds, "process_open_fds", kGauge, "descriptors", "", "Open file descriptors of the daemon.",
     "/proc is unreadable"},
    {kProcessMaxFds, "process_max_fds", kGauge, "descriptors", "", "Limit on open file descriptors of the daemon.",
     "/proc is unreadable, or there is no limit"},
    {kProcessStartTime, "process_start_time_seconds", kGauge, "seconds since 1970", "", "When the daemon started.",
     "/proc is unreadable"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kCatalogue.size(); ++i) {
    if (static_cast<std::size_t>(kCatalogue[i].id) != i) return false;
  }
  return true;
}
static_assert(in_order(), "the catalogue is indexed by MetricId");

}  // namespace

std::span<const MetricInfo> metric_catalogue() {
  return kCatalogue;
}

const MetricInfo& metric_info(MetricId id) {
  ROOFLINED_CHECK(id < kCount);
  return kCatalogue[static_cast<std::size_t>(id)];
}

std::string_view metric_type_name(MetricType type) {
  switch (type) {
    case kCounter:
      return "counter";
    case kGauge:
      return "gauge";
    case kHistogram:
      return "histogram";
  }
  return "";
}

}  // namespace rooflined
