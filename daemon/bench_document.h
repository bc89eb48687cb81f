// A benchmark as a file: what was run, where, and what came of it, schema_version 1. `rooflined bench` writes it,
// `rooflined report` reads it; the runs are the truth in it, the analysis can be made anew from them at any time.
//
// Values that were not measured are null. Threads: any.

#pragma once

#include "metrics/base/result.h"
#include "metrics/bench_analysis.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace rooflined::daemon {

inline constexpr int kBenchSchemaVersion = 1;

struct BenchDocument {
  // schema_version, tool_version, generated_utc, complete, system, llama_bench, settings, membw: as they are printed.
  nlohmann::ordered_json head;
  BenchInput input;
};

nlohmann::ordered_json to_json(const BenchAnalysis& analysis, const BenchInput& input);

// With its analysis, made now.
nlohmann::ordered_json to_json(const BenchDocument& document);

// Another schema version is read as far as it goes, and a note says so. Errors: kInvalid, where and what.
Result<BenchDocument> parse_bench_document(std::string_view text, const std::string& where);

// "2026-11-30T11:58:01Z"
std::string utc_text(std::int64_t seconds_since_epoch);

}  // namespace rooflined::daemon
