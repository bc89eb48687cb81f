#include "tests/simulator/truth_json.h"

#include "tests/support/catch.h"

#include <nlohmann/json.hpp>

namespace rooflined::simulator {
namespace {

TEST_CASE("the truth as JSON: sums as they are, ratios null without a denominator") {
  EngineOptions options;
  options.bandwidth = 100;
  options.efficiency = 0.5;
  PacedReport report;
  CHECK(nlohmann::json::parse(truth_json(report, options, "m"))["mbu"].is_null());

  report.truth.decode_passes = 10;
  report.truth.decode_tokens = 20;
  report.truth.dense_bytes = 300;
  report.truth.expert_bytes = 30;
  report.truth.kv_bytes = 3;
  report.truth.busy_seconds = 9;
  report.truth.sequence_seconds = 18;
  const auto json = nlohmann::json::parse(truth_json(report, options, "m"));
  CHECK(json["steps"] == 10);
  CHECK(json["bytes"]["total"] == 333);
  CHECK(json["mbu"].get<double>() == Approx(333.0 / 900));
  CHECK(json["batch_mean"].get<double>() == Approx(2));
  CHECK(json["itl_mean_seconds"].get<double>() == Approx(0.9));
}

}  // namespace
}  // namespace rooflined::simulator
