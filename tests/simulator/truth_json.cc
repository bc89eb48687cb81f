#include "tests/simulator/truth_json.h"

#include <nlohmann/json.hpp>

namespace rooflined::simulator {
namespace {

nlohmann::ordered_json ratio(double numerator, double denominator) {
  return denominator > 0 ? nlohmann::ordered_json(numerator / denominator) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string truth_json(const PacedReport& report, const EngineOptions& options, const std::string& model) {
  const Truth& truth = report.truth;
  const auto decode_tokens = static_cast<double>(truth.decode_tokens);
  nlohmann::ordered_json json = {
      {"model", model},
      {"bandwidth_bytes_per_second", options.bandwidth},
      {"efficiency", options.efficiency},
      {"steps", truth.decode_passes},
      {"prefill_steps", truth.prefill_steps},
      {"bytes",
       {{"dense", truth.dense_bytes},
        {"experts", truth.expert_bytes},
        {"kv", truth.kv_bytes},
        {"total", truth.bytes()}}},
      {"busy_seconds", truth.busy_seconds},
      {"busy_prefill_seconds", truth.busy_prefill_seconds},
      {"busy_overhead_seconds", truth.busy_overhead_seconds},
      {"sequence_seconds", truth.sequence_seconds},
      {"prompt_tokens", truth.prompt_tokens},
      {"output_tokens", truth.output_tokens},
      {"decode_tokens", truth.decode_tokens},
      {"requests", {{"finished", truth.sequences_finished}, {"cancelled", truth.sequences_cancelled}}},
      {"running", report.running},
      {"waiting", report.waiting},
      {"slips", report.slips},
      {"slipped_seconds", report.slipped_seconds},
  };
  json["batch_mean"] = ratio(truth.sequence_seconds, truth.busy_seconds);
  json["batch_mean_by_step"] = ratio(decode_tokens, static_cast<double>(truth.decode_passes));
  json["context_mean"] = ratio(truth.context_tokens, decode_tokens);
  json["itl_mean_seconds"] = ratio(truth.sequence_seconds, decode_tokens);
  json["mbu"] = ratio(truth.bytes(), truth.busy_seconds * options.bandwidth);
  return json.dump();
}

}  // namespace rooflined::simulator
