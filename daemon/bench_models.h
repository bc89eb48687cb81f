// The models of a benchmark before it runs: what each of them reads per token, by the convention that was asked for.
// Threads: one.

#pragma once

#include "daemon/llama_bench.h"
#include "metrics/base/result.h"
#include "metrics/bench_analysis.h"
#include "metrics/geometry.h"

#include <optional>
#include <string>
#include <vector>

namespace rooflined::daemon {

// Streamed: the tensors that a pass reads. File: the size that llama-bench reports, else that of the file; the
// published fits were made with it.
enum class BytesConvention { kStreamed, kFile };

struct PreparedModel {
  BenchModel model;
  std::optional<Geometry> geometry;
};

// A file whose shape cannot be read is refused where its tensors have to be counted. Errors: one line.
Result<PreparedModel> prepare_model(const std::string& path, BytesConvention convention);

// Mean KV bytes that a token reads of a cache of 16-bit entries, where that is known.
void add_kv_bytes(PreparedModel& prepared, unsigned depth, unsigned n_gen);

// What only a run tells: the size by llama-bench, and whether a GPU held weights.
void take_from_run(BenchModel& model, const LlamaBenchResult& result, BytesConvention convention);

}  // namespace rooflined::daemon
