// The names that other tools read, and the way of a measurement from the probe to its parent.

#include "daemon/measurement_json.h"

#include "tests/support/catch.h"

#include <string>

using namespace rooflined;
using namespace rooflined::daemon;

namespace {

ceiling::Measurement example() {
  ceiling::Measurement measurement;
  measurement.winner = ceiling::MeasuredCell{"streams2_prefetch", 2, 32e9, 28e9, true, {28e9, 32e9, 27e9}};
  measurement.verdict = ceiling::Verdict::kConfirmed;
  measurement.working_set = 2147483648;
  measurement.llc = 503316480;
  measurement.cache_inflated = false;
  measurement.huge_page_bytes = 2147483648;
  measurement.repetitions = 5;
  measurement.instruction_set = "AVX3";
  measurement.copy = 15e9;
  measurement.surroundings = {0.125, 0.5, 0.25, 3, 0};
  measurement.nodes = {{0, 17e9, 16e9, true}, {1, 16e9, 11e9, false}};
  measurement.duration_seconds = 7.5;
  measurement.warnings = {"busy machine: load 3.0 on 2 CPUs before the run"};
  measurement.cells = {{"streams2_prefetch", 2, 31e9, 29e9, true, {29e9, 31e9}},
                       {"copy", 2, 15e9, 10e9, false, {15e9, 5e9}}};
  return measurement;
}

constexpr const char* kGolden = R"({
  "ceiling_bytes_per_second": 32000000000.0,
  "kernel": "streams2_prefetch",
  "threads": 2,
  "stable": true,
  "verdict": "confirmed",
  "median_to_best": 0.875,
  "confirmed_median_bytes_per_second": 28000000000.0,
  "working_set_bytes": 2147483648,
  "llc_bytes": 503316480,
  "cache_inflated": false,
  "huge_pages": true,
  "huge_page_bytes": 2147483648,
  "repetitions": 5,
  "instruction_set": "AVX3",
  "copy_bytes_per_second": 15000000000.0,
  "surroundings": {
    "steal_share": 0.125,
    "others_cpus": 0.5,
    "cpu_pressure_share": 0.25,
    "throttled_periods": 3,
    "reclaim_events": 0
  },
  "duration_seconds": 7.5,
  "warnings": [
    "busy machine: load 3.0 on 2 CPUs before the run"
  ],
  "confirmation": {
    "kernel": "streams2_prefetch",
    "threads": 2,
    "best_bytes_per_second": 32000000000.0,
    "median_bytes_per_second": 28000000000.0,
    "stable": true,
    "samples": [
      28000000000.0,
      32000000000.0,
      27000000000.0
    ]
  },
  "nodes": [
    {
      "node": 0,
      "best_bytes_per_second": 17000000000.0,
      "median_bytes_per_second": 16000000000.0,
      "stable": true
    },
    {
      "node": 1,
      "best_bytes_per_second": 16000000000.0,
      "median_bytes_per_second": 11000000000.0,
      "stable": false
    }
  ],
  "cells": [
    {
      "kernel": "streams2_prefetch",
      "threads": 2,
      "best_bytes_per_second": 31000000000.0,
      "median_bytes_per_second": 29000000000.0,
      "stable": true,
      "samples": [
        29000000000.0,
        31000000000.0
      ]
    },
    {
      "kernel": "copy",
      "threads": 2,
      "best_bytes_per_second": 15000000000.0,
      "median_bytes_per_second": 10000000000.0,
      "stable": false,
      "samples": [
        15000000000.0,
        5000000000.0
      ]
    }
  ]
})";

}  // namespace

TEST_CASE("a measurement as JSON") {
  CHECK(to_json(example()).dump(2) == kGolden);
}

TEST_CASE("what does not hold is null, not zero") {
  auto measurement = example();
  measurement.verdict = ceiling::Verdict::kThrottled;
  measurement.llc.reset();
  auto json = to_json(measurement);
  CHECK(json["ceiling_bytes_per_second"].is_null());
  CHECK(json["confirmed_median_bytes_per_second"].is_null());
  CHECK(json["llc_bytes"].is_null());
  CHECK(json["verdict"] == "throttled");
  measurement.winner.reset();
  measurement.verdict = ceiling::Verdict::kUnstable;
  json = to_json(measurement);
  CHECK(json["kernel"].is_null());
  CHECK(json["threads"].is_null());
  CHECK(json["median_to_best"].is_null());
  CHECK(json["stable"] == false);
}

TEST_CASE("a report's lines come back as they were sent") {
  for (auto measurement : {example(), ceiling::Measurement()}) {
    const std::string line = report_line(measurement);
    CHECK(line.find('\n') == line.size() - 1);
    const auto item = parse_report_line(line);
    REQUIRE(std::holds_alternative<ceiling::Measurement>(item));
    CHECK(to_json(std::get<ceiling::Measurement>(item)) == to_json(measurement));
  }
  const auto progress = parse_report_line(report_line(ceiling::Progress{3, 2, 10, 52}));
  REQUIRE(std::holds_alternative<ceiling::Progress>(progress));
  CHECK(std::get<ceiling::Progress>(progress).total == 52);
  const auto error = parse_report_line(report_line(Error{ErrorCode::kLimit, "memory", "no room"}));
  REQUIRE(std::holds_alternative<Error>(error));
  CHECK(std::get<Error>(error).code == ErrorCode::kLimit);
  CHECK(std::get<Error>(error).message() == "memory: no room");
}

TEST_CASE("a line that no probe of ours writes is an error") {
  for (const char* const line :
       {"", "{", "[]", "7", "null", "{}", R"({"progress":{}})",
        R"({"progress":{"kernel":99,"threads":1,"done":1,"total":1}})",
        R"({"progress":{"kernel":"x","threads":1,"done":1,"total":1}})", R"({"measurement":{}})",
        R"({"measurement":[]})", R"({"measurement":{"confirmation":3}})",
        R"({"error":{"code":99,"where":"","detail":""}})", R"({"error":7})"}) {
    INFO(line);
    const auto item = parse_report_line(line);
    REQUIRE(std::holds_alternative<Error>(item));
    CHECK(std::get<Error>(item).code == ErrorCode::kInvalid);
  }
}
