#include "tests/simulator/truth_json.h"

#include "tests/support/catch.h"

#include <nlohmann/json.hpp>

namespace rooflined::simulator {
namespace {

TEST_CASE("the truth as JSON: sums as they are, ratios null without a denominator") {
  ServerOptions options;
  options.model.name = "m";
  options.engine.bandwidth = 100;
  options.engine.efficiency = 0.5;
  PacedReport report;
  CHECK(nlohmann::json::parse(truth_json(report, options))["mbu"].is_null());

  report.truth.decode_passes = 10;
  report.truth.decode_tokens = 20;
  report.truth.dense_bytes = 300;
  report.truth.expert_bytes = 30;
  report.truth.kv_bytes = 3;
  report.truth.busy_seconds = 9;
  report.truth.busy_capacity_bytes = 900;
  report.truth.sequence_seconds = 18;
  const auto json = nlohmann::json::parse(truth_json(report, options));
  CHECK(json["steps"] == 10);
  CHECK(json["bytes"]["total"] == 333);
  CHECK(json["mbu"].get<double>() == Approx(333.0 / 900));
  CHECK(json["batch_mean"].get<double>() == Approx(2));
  CHECK(json["itl_mean_seconds"].get<double>() == Approx(0.9));
}

TEST_CASE("the truth about a capture has a part for each phase") {
  ServerOptions options;
  CaptureResult result;
  result.truth.dense_bytes = 30;
  result.truth.busy_capacity_bytes = 60;
  result.phases.resize(2);
  result.phases[1] = {2, 5, result.truth};
  const auto json = nlohmann::json::parse(truth_json(result, options, 7));
  CHECK(json["packets"] == 7);
  CHECK(json["mbu"] == 0.5);
  CHECK(json["phases"][0]["mbu"].is_null());
  CHECK(json["phases"][1]["to_seconds"] == 5);
  CHECK(json["phases"][1]["mbu"] == 0.5);
}

}  // namespace
}  // namespace rooflined::simulator
