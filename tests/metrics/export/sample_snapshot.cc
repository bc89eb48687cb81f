#include "tests/metrics/export/sample_snapshot.h"

#include <random>

namespace rooflined {

namespace {

HistogramSnapshot sample_histogram(std::size_t buckets, double scale, std::mt19937_64& random) {
  HistogramSnapshot histogram;
  for (std::size_t i = 0; i <= buckets; ++i) {
    histogram.bucket_counts.push_back(random() % 5000);
    histogram.count += histogram.bucket_counts.back();
  }
  histogram.sum = static_cast<double>(histogram.count) * scale;
  return histogram;
}

WindowSnapshot sample_window(const std::string& name, double load) {
  WindowSnapshot window;
  window.window = name;
  window.tokens_per_second = 41.25 * load;
  window.decode_busy_ratio = 0.8125;
  window.decode_bandwidth_ratio = 0.375;
  window.decode_bytes_per_second = 1.05e10 * load;
  window.mbu_ratio = 0.4615384615384616;
  window.tokens_per_second_bound = 88.5 * load;
  window.batch_size = 2.75;
  window.context_tokens = 1536.5;
  window.itl_seconds = LatencyQuantiles{0.0625, 0.0615, 0.0875, 0.125};
  return window;
}

}  // namespace

TargetSnapshot sample_target(const std::string& name, const std::string& model, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto figure = [&random](double scale) { return scale * static_cast<double>(random() % 1000003) / 1000; };
  TargetSnapshot target;
  target.target = name;
  target.server = "llama.cpp";
  target.version = "b6325";
  target.model = model;
  target.port = 8080;
  target.output_tokens = static_cast<double>(random() % 10000000);
  target.prompt_tokens = static_cast<double>(random() % 100000000);
  target.decode_tokens = static_cast<double>(random() % 10000000);
  target.decode_passes = figure(100);
  target.decode_sequence_seconds = figure(10);
  target.decode_busy_seconds = figure(5);
  target.decode_prefill_overlap_seconds = figure(1);
  target.decode_bytes_dense = figure(1e12);
  target.decode_bytes_experts = figure(1e12);
  target.decode_bytes_kv = figure(1e11);
  target.requests = {random() % 100000, random() % 100, random() % 10};
  target.tokens_by_source = {figure(10), figure(1), figure(0.1)};
  target.inter_token_latency = sample_histogram(kTokenLatencyBounds.size(), 0.0234, random);
  target.inter_event_latency = sample_histogram(kTokenLatencyBounds.size(), 0.0334, random);
  target.time_to_first_token = sample_histogram(kRequestLatencyBounds.size(), 0.734, random);
  target.request_duration = sample_histogram(kRequestLatencyBounds.size(), 9.34, random);
  target.decode_exits = {{"overtaken", 3}, {"silence", 1}};
  target.token_estimate_error = 0.0125;
  target.active_sequences = 3;
  target.exchanges_in_flight = 4;
  target.bandwidth = 2.8e10;
  target.geometry = GeometrySnapshot{"qwen3moe", "file", 1.5e9, 1.6e10, 98304};
  target.caveats = {"estimated_tokens"};
  const double load = 1 + figure(0.001);
  target.windows = {sample_window("1m", load), sample_window("5m", load)};
  target.replicas = 2;
  target.live = sample_window("10s", 1);
  target.live->tokens_per_second = 44;
  return target;
}

Snapshot sample_snapshot() {
  Snapshot snapshot;
  snapshot.taken_at = WallTime::from_ns(1'700'000'000'500'000'000);
  snapshot.targets = {sample_target("llama.cpp-8080", "Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL.gguf", 1),
                      sample_target("vllm-8000", "Qwen3-8B", 2)};
  snapshot.targets[0].configured = true;
  DeploySnapshot first;
  first.version = "b6000";
  first.fingerprint = "0123456789ab";
  first.ended = true;
  DeploySnapshot deploy;
  deploy.generation = 2;
  deploy.at = WallTime::from_ns(1'700'000'123'500'000'000);
  deploy.cause = "version";
  deploy.version = "b6123";
  deploy.fingerprint = "ba9876543210";
  deploy.mbu = ChangeSnapshot{0.8, 0.75, 0.85, 24, 1};
  deploy.itl = ChangeSnapshot{1.25, 1.2, 1.3125, 24, 1};
  snapshot.targets[0].deploys = {first, deploy};
  snapshot.targets[0].deploys_seen = {3, 1, 0, 0, 0, 0};
  snapshot.targets[0].proxied_requests = 3;
  snapshot.targets[0].proxied_tokens = 450;
  snapshot.targets[1].up = false;
  snapshot.node_ratios = {{"1m", "ram", 0.375}, {"5m", "ram", 0.25}};
  CeilingSnapshot ceiling;
  ceiling.source = "measured";
  ceiling.kernel = "read4";
  ceiling.threads = 8;
  ceiling.bytes_per_second = 2.8e10;
  ceiling.median_bytes_per_second = 2.75e10;
  ceiling.median_to_best = 0.982142857142857;
  ceiling.age_seconds = 3600.25;
  ceiling.last_success = WallTime::from_ns(1'699'996'400'250'000'000);
  ceiling.stable = true;
  ceiling.results = {{*ceiling.last_success, 2.8e10, "read4", 8}};
  snapshot.ceiling = ceiling;
  snapshot.ceiling_measurements = {5, 1, 0, 2};
  snapshot.ceiling_abort_latency = {{0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 2, 0.00034};
  CeilingMeasurementSnapshot& last = snapshot.ceiling_last.emplace();
  last.measured_at = *ceiling.last_success;
  last.verdict = "confirmed";
  last.working_set = 2 * kGiB;
  last.cells = {{"read4", 8, 2.8e10, 2.75e10, true, {2.8e10, 2.75e10}}, {"copy", 8, 2.1e10, 1.1e10, false, {}}};
  last.confirmation = last.cells[0];
  last.warnings = {"a \"quoted\" word"};
  snapshot.idle = false;
  snapshot.idle_blocked = {{"load", false}, {"requests", true}};
  snapshot.capture = {"any", 123456, 7, 987654321, 2, 2896, 12, 1, {{"tls", 4}}, {{"chunk_size", 1}}};
  snapshot.collectors = {{"tap", true, 0.00025}, {"ceiling", true, 12.5}};
  return snapshot;
}

}  // namespace rooflined
