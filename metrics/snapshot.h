// Everything that one scrape can show, as plain values. Made on the capture thread about once a second, published as a
// shared pointer to const, read by any thread. metrics/export turns it into Prometheus text and JSON; names and help
// texts are in metrics/catalogue.h.
//
// Absent, not zero: an optional without a value is a series that is not exported.

#pragma once

#include "metrics/base/time.h"
#include "metrics/base/units.h"
#include "metrics/exchange.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rooflined {

// Bounds of the four latency histograms in seconds, ascending; the last bucket (+Inf) is implied. First bucket 0.5 ms:
// frames of one burst arrive within that. No more of them: a target's scrape has to stay under 15 kB.
inline constexpr std::array<double, 14> kTokenLatencyBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.025,
                                                               0.04,   0.06,  0.1,    0.2,   0.5,  1,     2.5};
inline constexpr std::array<double, 12> kRequestLatencyBounds = {0.025, 0.1, 0.25, 0.5, 1,   2.5,
                                                                 5,     10,  30,   60,  120, 300};
// From a request's packet to the last load of the probe that it ends: 1 ms is what is promised.
inline constexpr std::array<double, 10> kAbortLatencyBounds = {0.00005, 0.0001, 0.0002, 0.0003, 0.0005,
                                                               0.00075, 0.001,  0.002,  0.005,  0.01};

struct HistogramSnapshot {
  std::vector<std::uint64_t> bucket_counts;  // not cumulative; one more than the bounds
  std::uint64_t count = 0;
  double sum = 0;
};

struct LatencyQuantiles {
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
};

struct WindowSnapshot {
  std::string window;  // as in the settings: "1m"
  double tokens_per_second = 0;
  double decode_busy_ratio = 0;
  std::optional<double> decode_bandwidth_ratio;   // absent while bandwidth or geometry are unknown
  std::optional<double> decode_bytes_per_second;  // absent: the geometry is unknown, or was for part of the window
  // Absent without decode in the window.
  std::optional<double> mbu_ratio;
  std::optional<double> tokens_per_second_bound;
  std::optional<double> batch_size;
  std::optional<double> context_tokens;
  std::optional<LatencyQuantiles> itl_seconds;
};

// What the live page draws of a target's last minutes.
struct RecentPoint {
  double at = 0;  // seconds since 1970
  double tokens_per_second = 0;
  std::optional<double> itl_seconds;
  std::optional<double> mbu_ratio;
};

struct GeometrySnapshot {
  std::string architecture;
  std::string source;
  double dense_bytes = 0;
  double expert_bytes_total = 0;
  double kv_bytes_per_token = 0;
};

// After a deploy over before, at like batch and context: deploy-change.md.
struct ChangeSnapshot {
  double ratio = 1;
  double low = 1;
  double high = 1;
  std::uint64_t slices = 0;   // of ten seconds, after
  std::uint64_t against = 0;  // the generation before
};

struct DeploySnapshot {
  std::uint64_t generation = 1;
  std::optional<WallTime> at;  // absent: it ran when the target was first seen
  std::string cause;           // empty likewise
  std::string version;         // as marked, else as the server tells
  std::string fingerprint;
  std::optional<ChangeSnapshot> mbu;
  std::optional<ChangeSnapshot> itl;
  // Against what a rollback goes back to.
  std::optional<ChangeSnapshot> rollback_mbu;
  std::optional<ChangeSnapshot> rollback_itl;
  bool withheld = false;  // it is being looked at whether the memory fell as much
  bool ended = false;     // the comparison is over: accepted, a day old, or the machine's doing
};

struct TargetSnapshot {
  std::string target;   // unique: "llama.cpp-8080"
  std::string server;   // family_name()
  std::string version;  // empty while unknown
  std::string model;    // a name that the server lists, "unknown" where it lists none
  std::uint16_t port = 0;
  std::string memory = "ram";  // that its weights are read from: "ram" or "gpu"
  // Another model of the target of that name, which comes before it: what is not the model's own is that one's.
  bool further = false;
  bool retired = false;     // an earlier one: counters only (and `up` is false)
  bool proxy = false;       // its streams are those of another target, where they count
  std::string engine;       // that target's name
  bool configured = false;  // the settings have a [[target]] for its port
  double replicas = 1;      // decode batches in flight: engines × pipeline stages
  bool up = true;           // false: every gauge but rooflined_target_up is absent

  // Counters since the target appeared.
  std::uint64_t proxied_requests = 0;  // these two are in none of the others
  std::uint64_t proxied_tokens = 0;
  double output_tokens = 0;
  double prompt_tokens = 0;
  double decode_tokens = 0;
  double decode_passes = 0;
  double decode_sequence_seconds = 0;
  double decode_busy_seconds = 0;
  double decode_prefill_overlap_seconds = 0;
  double decode_bytes_dense = 0;
  double decode_bytes_experts = 0;
  double decode_bytes_kv = 0;
  std::array<std::uint64_t, 3> requests{};            // by Outcome
  std::array<double, 3> tokens_by_source{};           // by TokenSource
  HistogramSnapshot inter_token_latency;              // kTokenLatencyBounds
  HistogramSnapshot inter_event_latency;              // kTokenLatencyBounds
  HistogramSnapshot time_to_first_token;              // kRequestLatencyBounds
  HistogramSnapshot request_duration;                 // kRequestLatencyBounds
  std::array<std::uint64_t, 6> deploys_seen{};        // by server::DeployCause
  std::map<std::string, std::uint64_t> decode_exits;  // ways out of decode: "overtaken", "loss", "silence", "late"

  // Gauges.
  std::vector<DeploySnapshot> deploys;  // oldest first, a few; the last one runs
  std::uint64_t active_sequences = 0;
  std::uint64_t exchanges_in_flight = 0;
  std::optional<double> token_estimate_error;  // mean |estimate / total − 1| of the totals of late
  bool ceiling_exceeded = false;
  std::optional<BytesPerSecond> bandwidth;
  std::optional<GeometrySnapshot> geometry;
  std::vector<std::string> caveats;  // reasons of ledger.md, each at most once
  std::vector<WindowSnapshot> windows;
  // For people who watch: ten seconds, not exported to Prometheus, and what they were over the last minutes (null:
  // none).
  std::optional<WindowSnapshot> live;
  std::shared_ptr<const std::vector<RecentPoint>> recent;
};

struct NodeRatioSnapshot {
  std::string window;
  std::string memory;  // "ram" or "gpu"
  double ratio = 0;
};

struct CeilingCellSnapshot {
  std::string kernel;
  unsigned threads = 0;
  BytesPerSecond best = 0;
  BytesPerSecond median = 0;
  bool stable = false;
  std::vector<BytesPerSecond> samples;  // in the order in which they were taken
};

// The last measurement, whatever came of it.
struct CeilingMeasurementSnapshot {
  WallTime measured_at;
  std::string verdict;  // "confirmed", "unstable", …
  Bytes working_set = 0;
  std::vector<CeilingCellSnapshot> cells;
  std::optional<CeilingCellSnapshot> confirmation;  // the winner's fresh repetitions
  std::vector<std::string> warnings;
};

// A confirmed result that counts.
struct CeilingResultSnapshot {
  WallTime measured_at;
  BytesPerSecond bytes_per_second = 0;
  std::string kernel;
  unsigned threads = 0;
};

struct CeilingSnapshot {
  std::string source;  // "measured", "configured", "observed"
  std::string kernel;  // empty unless measured
  unsigned threads = 0;
  BytesPerSecond bytes_per_second = 0;
  std::optional<BytesPerSecond> median_bytes_per_second;
  std::optional<double> median_to_best;
  std::optional<double> age_seconds;
  std::optional<WallTime> last_success;
  bool stable = false;
  bool suspect = false;
  bool stale = false;
  std::vector<CeilingResultSnapshot> results;  // the adopted one is the second highest; oldest first
};

struct CaptureSnapshot {
  std::string interface;
  std::uint64_t packets = 0;
  std::uint64_t dropped_packets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t gaps = 0;
  std::uint64_t missing_bytes = 0;
  std::uint64_t flows = 0;
  std::uint64_t clock_steps = 0;
  std::map<std::string, std::uint64_t> flows_ignored;  // by reason
  std::map<std::string, std::uint64_t> parse_errors;   // by reason
};

struct CollectorSnapshot {
  std::string name;  // "tap", "ceiling", "model", "server"
  bool up = true;
  double duration_seconds = 0;  // of the last update
};

struct Snapshot {
  WallTime taken_at;
  std::vector<TargetSnapshot> targets;  // by name
  std::vector<NodeRatioSnapshot> node_ratios;
  std::optional<CeilingSnapshot> ceiling;
  std::optional<CeilingMeasurementSnapshot> ceiling_last;
  std::array<std::uint64_t, 4> ceiling_measurements{};  // adopted, unstable, suspect, aborted
  HistogramSnapshot ceiling_abort_latency;              // kAbortLatencyBounds
  std::optional<bool> idle;                             // absent where nothing waits for an idle window
  std::map<std::string, bool> idle_blocked;             // by reason: 1 while it blocks
  CaptureSnapshot capture;
  std::vector<CollectorSnapshot> collectors;
};

}  // namespace rooflined
