#include "tests/simulator/truth_json.h"

#include <nlohmann/json.hpp>

namespace rooflined::simulator {
namespace {

using Json = nlohmann::ordered_json;

Json ratio(double numerator, double denominator) {
  return denominator > 0 ? Json(numerator / denominator) : Json(nullptr);
}

void add_sums(const Truth& truth, Json& json) {
  json["steps"] = truth.decode_passes;
  json["prefill_steps"] = truth.prefill_steps;
  json["bytes"] = {
      {"dense", truth.dense_bytes}, {"experts", truth.expert_bytes}, {"kv", truth.kv_bytes}, {"total", truth.bytes()}};
  json["busy_seconds"] = truth.busy_seconds;
  json["busy_prefill_seconds"] = truth.busy_prefill_seconds;
  json["busy_overhead_seconds"] = truth.busy_overhead_seconds;
  json["sequence_seconds"] = truth.sequence_seconds;
  json["prompt_tokens"] = truth.prompt_tokens;
  json["prefilled_tokens"] = truth.prefilled_tokens;
  json["output_tokens"] = truth.output_tokens;
  json["decode_tokens"] = truth.decode_tokens;
  json["preemptions"] = truth.preemptions;
  json["requests"] = {{"finished", truth.sequences_finished}, {"cancelled", truth.sequences_cancelled}};
}

void add_ratios(const Truth& truth, Json& json) {
  const auto decode_tokens = static_cast<double>(truth.decode_tokens);
  json["batch_mean"] = ratio(truth.sequence_seconds, truth.busy_seconds);
  json["batch_mean_by_step"] = ratio(decode_tokens, static_cast<double>(truth.decode_passes));
  json["context_mean"] = ratio(truth.context_tokens, decode_tokens);
  json["itl_mean_seconds"] = ratio(truth.sequence_seconds, decode_tokens);
  json["mbu"] = ratio(truth.bytes(), truth.busy_capacity_bytes);
}

Json server_json(const ServerOptions& options) {
  return {{"model", options.model.name},
          {"bandwidth_bytes_per_second", options.engine.bandwidth},
          {"efficiency", options.engine.efficiency},
          {"replicas", options.replicas},
          {"version", options.version}};
}

}  // namespace

std::string truth_json(const PacedReport& report, const ServerOptions& options) {
  Json json = server_json(options);
  add_sums(report.truth, json);
  json["running"] = report.running;
  json["waiting"] = report.waiting;
  json["slips"] = report.slips;
  json["slipped_seconds"] = report.slipped_seconds;
  add_ratios(report.truth, json);
  return json.dump();
}

std::string truth_json(const CaptureResult& result, const ServerOptions& options, std::uint64_t packets) {
  Json json = server_json(options);
  add_sums(result.truth, json);
  add_ratios(result.truth, json);
  json["requests"]["sent"] = result.requests;
  json["requests"]["aborted"] = result.aborted;
  json["requests"]["cut"] = result.cut;
  json["connections_refused"] = result.refused;
  json["seconds"] = result.seconds;
  json["packets"] = packets;
  json["phases"] = Json::array();
  for (const Phase& phase : result.phases) {
    Json one = {{"from_seconds", phase.from_seconds}, {"to_seconds", phase.to_seconds}};
    add_sums(phase.truth, one);
    add_ratios(phase.truth, one);
    json["phases"].push_back(std::move(one));
  }
  return json.dump();
}

}  // namespace rooflined::simulator
