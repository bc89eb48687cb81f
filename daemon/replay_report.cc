#include "daemon/replay_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace rooflined::daemon {
namespace {

using nlohmann::json;

json latency_json(const LogHistogram& histogram, std::optional<double> mean) {
  if (histogram.weight() <= 0) return json(nullptr);
  return {{"mean", mean.value_or(histogram.mean())},
          {"p50", histogram.quantile(0.50)},
          {"p95", histogram.quantile(0.95)},
          {"p99", histogram.quantile(0.99)}};
}

json target_json(const Targets::View& view, const LatencyLog& latencies, double seconds) {
  const EngineBooks::Settled sums = view.books.settled();
  const EngineBooks::Finished& finished = view.books.finished();
  const TargetSnapshot& snapshot = view.snapshot;
  std::optional<BytesPerSecond> share = snapshot.bandwidth;
  if (share) *share /= view.books.replicas();
  std::uint64_t requests = 0;
  for (const std::uint64_t count : snapshot.requests) requests += count;

  json target = figures_json(sums, latencies, seconds, share);
  target["target"] = snapshot.target;
  target["server"] = snapshot.server;
  target["version"] = snapshot.version.empty() ? json(nullptr) : json(snapshot.version);
  target["model"] = snapshot.model == "unknown" ? json(nullptr) : json(snapshot.model);
  target["role"] = snapshot.proxy ? "proxy" : "engine";
  target["engine"] = snapshot.proxy ? json(snapshot.engine) : json(nullptr);
  target["proxied"] = {{"requests", snapshot.proxied_requests}, {"output_tokens", snapshot.proxied_tokens}};
  target["requests"] = requests;
  target["requests_aborted"] = snapshot.requests[static_cast<std::size_t>(Outcome::kAborted)];
  target["requests_failed"] = snapshot.requests[static_cast<std::size_t>(Outcome::kError)];
  target["prompt_tokens"] = sums.prompt_tokens;
  target["token_source"] = {{"exact_live", sums.tokens_by_source[0]},
                            {"exact_final", sums.tokens_by_source[1]},
                            {"estimated", sums.tokens_by_source[2]}};
  target["finished"] = {{"requests", finished.requests},
                        {"output_tokens", finished.output_tokens},
                        {"prompt_tokens", finished.prompt_tokens},
                        {"sequence_seconds", finished.sequence_seconds}};
  target["caveats"] = snapshot.caveats;
  return target;
}

json change_json(const std::optional<ChangeSnapshot>& change) {
  if (!change) return nullptr;
  return {{"ratio", change->ratio},
          {"low", change->low},
          {"high", change->high},
          {"slices", change->slices},
          {"against", change->against}};
}

json deploy_json(const DeploySnapshot& deploy) {
  return {{"generation", deploy.generation},
          {"timestamp", deploy.at ? json(to_seconds(deploy.at->since_epoch())) : json(nullptr)},
          {"cause", deploy.cause.empty() ? json(nullptr) : json(deploy.cause)},
          {"version", deploy.version.empty() ? json(nullptr) : json(deploy.version)},
          {"fingerprint", deploy.fingerprint},
          {"mbu_change", change_json(deploy.mbu)},
          {"itl_change", change_json(deploy.itl)},
          {"rollback_mbu_change", change_json(deploy.rollback_mbu)},
          {"rollback_itl_change", change_json(deploy.rollback_itl)}};
}

std::string change_text(const json& change) {
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", change["ratio"].get<double>(), change["low"].get<double>(),
                     change["high"].get<double>());
}

std::string text_of(const json& value, int digits) {
  return value.is_number() ? fmt::format("{:.{}f}", value.get<double>(), digits) : "-";
}

}  // namespace

json figures_json(const EngineBooks::Settled& sums, const LatencyLog& latencies, double seconds,
                  std::optional<BytesPerSecond> bandwidth) {
  const bool decoded = sums.decode_tokens > 0 && sums.busy_seconds > 0;
  const double bytes = sums.bytes_dense + sums.bytes_experts + sums.bytes_kv;
  json figures;
  figures["output_tokens"] = sums.output_tokens;
  figures["decode_tokens"] = sums.decode_tokens;
  figures["decode_passes"] = sums.passes;
  figures["sequence_seconds"] = sums.sequence_seconds;
  figures["busy_seconds"] = sums.busy_seconds;
  figures["tokens_per_second"] = seconds > 0 ? json(sums.output_tokens / seconds) : json(nullptr);
  // τ from the sums, so that late totals count; the quantiles are of the events as they came.
  figures["itl_seconds"] = latency_json(
      latencies.inter_token, decoded ? std::optional(sums.sequence_seconds / sums.decode_tokens) : std::nullopt);
  figures["ttft_seconds"] = latency_json(latencies.first_token, std::nullopt);
  figures["batch_mean"] = decoded ? json(sums.sequence_seconds / sums.busy_seconds) : json(nullptr);
  figures["context_mean"] = decoded ? json(sums.context_sum / sums.decode_tokens) : json(nullptr);
  figures["decode_bytes"] = nullptr;
  figures["mbu_ratio"] = nullptr;
  if (!sums.bytes_known) return figures;
  figures["decode_bytes"] = {
      {"dense", sums.bytes_dense}, {"experts", sums.bytes_experts}, {"kv", sums.bytes_kv}, {"total", bytes}};
  if (bandwidth && sums.billed_busy_seconds > 0) {
    figures["mbu_ratio"] = bytes / (sums.billed_busy_seconds * *bandwidth);
  }
  return figures;
}

ReplayTotals replay_totals(const Line& line) {
  const CaptureSnapshot capture = line.capture_snapshot(std::string(), tap::CaptureStats());
  ReplayTotals totals;
  totals.packets = capture.packets;
  totals.bytes = capture.bytes;
  const tap::StreamCounters responses = line.tap().counters().responses;
  totals.gaps = responses.gaps;
  totals.bytes_missing = responses.bytes_missing;
  totals.request_bytes_missing = capture.missing_bytes - responses.bytes_missing;
  totals.parse_errors = capture.parse_errors;
  totals.first_time = line.tap().first_time();
  totals.last_time = line.tap().last_time();
  return totals;
}

json replay_json(const ReplayTotals& totals, const Line& line, const LatencyLogs& latencies,
                 std::optional<BytesPerSecond> ceiling) {
  const double seconds = totals.first_time && totals.last_time ? to_seconds(*totals.last_time - *totals.first_time) : 0;
  json report;
  json& capture = report["capture"];
  capture["packets"] = totals.packets;
  capture["bytes"] = totals.bytes;
  capture["gaps"] = totals.gaps;
  capture["bytes_missing"] = totals.bytes_missing;
  capture["request_bytes_missing"] = totals.request_bytes_missing;
  std::uint64_t errors = 0;
  for (const auto& [reason, count] : totals.parse_errors) errors += count;
  capture["parse_errors"] = errors;
  capture["parse_errors_by_reason"] = totals.parse_errors;
  const auto time_json = [](const std::optional<LineTime>& time) {
    return time ? json(to_seconds(time->since_epoch())) : json(nullptr);
  };
  capture["first_time"] = time_json(totals.first_time);
  capture["last_time"] = time_json(totals.last_time);
  report["targets"] = json::array();
  for (const Targets::View& view : line.targets().views(ceiling)) {
    json target = target_json(view, *latencies.at(view.endpoint), seconds);
    target["deploys"] = json::array();
    for (const DeploySnapshot& deploy : line.deploys().deploys_of(view.endpoint)) {
      target["deploys"].push_back(deploy_json(deploy));
    }
    report["targets"].push_back(std::move(target));
  }
  return report;
}

std::string replay_table(const json& report) {
  std::string text;
  const json& capture = report["capture"];
  if (capture.is_object()) {
    text += fmt::format("{} packets, {} payload bytes, {} gaps ({} bytes missing), {} parse errors\n",
                        capture["packets"].get<std::uint64_t>(), capture["bytes"].get<std::uint64_t>(),
                        capture["gaps"].get<std::uint64_t>(), capture["bytes_missing"].get<std::uint64_t>(),
                        capture["parse_errors"].get<std::uint64_t>());
  }
  for (const json& target : report["targets"]) {
    text += fmt::format("\n{}\n", target["target"].get<std::string>());
    if (target.value("role", "") == "proxy")
      text += fmt::format("  a proxy of {}: its streams count there\n", target["engine"].get<std::string>());
    const auto line = [&text](const char* what, const std::string& value) {
      text += fmt::format("  {:<26}{}\n", what, value);
    };
    if (target["requests"].is_number()) {
      line("requests", fmt::format("{} ({} aborted, {} failed)", target["requests"].get<std::uint64_t>(),
                                   target["requests_aborted"].get<std::uint64_t>(),
                                   target["requests_failed"].get<std::uint64_t>()));
    }
    line("output tokens", text_of(target["output_tokens"], 0));
    line("prompt tokens", text_of(target["prompt_tokens"], 0));
    line("decode passes", text_of(target["decode_passes"], 1));
    line("busy seconds", text_of(target["busy_seconds"], 3));
    line("tokens/s", text_of(target["tokens_per_second"], 2));
    if (target["itl_seconds"].is_object()) {
      line("inter-token latency ms",
           fmt::format("{:.2f} mean, {:.2f} p50, {:.2f} p99", target["itl_seconds"]["mean"].get<double>() * 1e3,
                       target["itl_seconds"]["p50"].get<double>() * 1e3,
                       target["itl_seconds"]["p99"].get<double>() * 1e3));
    }
    line("batch", text_of(target["batch_mean"], 2));
    line("context", text_of(target["context_mean"], 1));
    if (target["decode_bytes"].is_object()) line("decode bytes", text_of(target["decode_bytes"]["total"], 0));
    const json& mbu = target["mbu_ratio"];
    if (mbu.is_number() && mbu.get<double>() > 1) {
      line("MBU", "at or above the measured ceiling");
    } else {
      line("MBU", mbu.is_number()                      ? fmt::format("{:.1f} %", mbu.get<double>() * 100)
                  : target["decode_bytes"].is_object() ? "- (needs --ceiling)"
                                                       : "- (needs --model and --ceiling)");
    }
    for (const json& deploy : target.value("deploys", json::array())) {
      if (!deploy["cause"].is_string()) continue;
      line("deploy",
           fmt::format("{}: {}", deploy["generation"].get<std::uint64_t>(), deploy["cause"].get<std::string>()));
      if (deploy["mbu_change"].is_object()) line("  MBU, after/before", change_text(deploy["mbu_change"]));
      if (deploy["itl_change"].is_object()) line("  latency, after/before", change_text(deploy["itl_change"]));
    }
    for (const json& caveat : target["caveats"]) line("caveat", caveat.get<std::string>());
  }
  return text;
}

}  // namespace rooflined::daemon
