#include "tests/simulator/load_report.h"

#include <fmt/format.h>

namespace rooflined::simulator {
namespace {

using Json = nlohmann::ordered_json;

Json latency_json(Samples& samples) {
  if (samples.count() == 0) return nullptr;
  return {{"mean", samples.mean()},
          {"p50", samples.quantile(0.50)},
          {"p95", samples.quantile(0.95)},
          {"p99", samples.quantile(0.99)}};
}

void print_latency(const char* name, Samples& samples) {
  if (samples.count() == 0) return;
  fmt::print("{:<22} mean {:.3f} ms, p50 {:.3f}, p95 {:.3f}, p99 {:.3f}\n", name, samples.mean() * 1e3,
             samples.quantile(0.50) * 1e3, samples.quantile(0.95) * 1e3, samples.quantile(0.99) * 1e3);
}

double per_second(std::uint64_t count, const LoadResult& result) {
  return result.elapsed_seconds > 0 ? static_cast<double>(count) / result.elapsed_seconds : 0;
}

}  // namespace

Json load_json(LoadResult& result) {
  Json json = {{"elapsed_seconds", result.elapsed_seconds}};
  json["requests"] = {{"completed", result.completed}, {"failed", result.failures()}, {"cut", result.cut},
                      {"left", result.left},           {"skipped", result.skipped},   {"good", result.good}};
  json["failures"] = result.failed;
  json["prompt_tokens"] = result.prompt_tokens;
  json["output_tokens"] = result.output_tokens;
  json["tokens_per_second"] = per_second(result.output_tokens, result);
  json["requests_per_second"] = per_second(result.completed, result);
  json["goodput_requests_per_second"] = per_second(result.good, result);
  json["ttft_seconds"] = latency_json(result.ttft_seconds);
  json["itl_seconds"] = latency_json(result.itl_seconds);
  json["request_seconds"] = latency_json(result.request_seconds);
  return json;
}

void print_load_table(LoadResult& result) {
  fmt::print("{:<22} {} completed, {} failed, {} left, {} cut\n", "requests", result.completed, result.failures(),
             result.left, result.cut);
  for (const auto& [reason, times] : result.failed) fmt::print("{:<22} {} × {}\n", "", times, reason);
  fmt::print("{:<22} {:.2f} requests per second, of {:.2f} that completed\n", "goodput",
             per_second(result.good, result), per_second(result.completed, result));
  fmt::print("{:<22} {} in {:.1f} s: {:.1f} per second\n", "output tokens", result.output_tokens,
             result.elapsed_seconds, per_second(result.output_tokens, result));
  print_latency("time to first token", result.ttft_seconds);
  print_latency("inter-token latency", result.itl_seconds);
}

}  // namespace rooflined::simulator
