// From benchmark runs of several models on one machine to what they say about it: which bandwidth decode reaches,
// whether the memory bounds it, which thread count to take.
//
//   in:   models with their bytes per token and their runs, the ceiling where there is one
//   out:  figures per model, the fit over the dense ones, and warnings in words
//
// Mixtures of experts and models on a GPU are shown and left out of the fit, of the utilisations and of the headline:
// the first read fewer bytes than their size, the second another memory. Absent, not zero. Pure; threads: any.

#pragma once

#include "metrics/bandwidth_fit.h"
#include "metrics/base/units.h"
#include "metrics/thread_sweep.h"

#include <optional>
#include <string>
#include <vector>

namespace rooflined {

struct BenchRun {
  unsigned threads = 0;
  unsigned depth = 0;  // tokens in the KV cache before the first one that was timed
  std::optional<double> decode;
  std::optional<double> decode_deviation;
  std::optional<double> prefill;
  std::optional<double> prefill_deviation;
};

// Mean KV bytes that a token read in the runs of one depth.
struct DepthBytes {
  unsigned depth = 0;
  double kv_bytes = 0;
};

struct BenchModel {
  std::string name;
  std::string path;
  bool moe = false;
  bool offloaded = false;
  std::optional<double> bytes;  // of weights, that a token reads
  std::string bytes_source;     // "streamed tensors", "llama-bench model_size", "file size", "active experts"
  std::vector<DepthBytes> kv;
  std::vector<BenchRun> runs;
  std::vector<std::string> failures;  // of runs that gave nothing, one line each

  bool comparable() const { return !moe && !offloaded; }
};

enum class CeilingSource { kNone, kMeasured, kSupplied };

struct BenchInput {
  std::vector<BenchModel> models;
  std::optional<BytesPerSecond> ceiling;
  CeilingSource ceiling_source = CeilingSource::kNone;
  std::optional<Bytes> llc;
  std::vector<std::string> notes;  // of what was seen while it ran; they lead the warnings
};

struct DepthFigures {
  unsigned depth = 0;
  unsigned threads = 0;
  double decode = 0;
  std::optional<double> of_first;           // over decode at the smallest depth
  std::optional<double> kv_bytes;           // mean per token
  std::optional<double> of_first_by_bytes;  // what it would be if bytes alone counted
  std::optional<BytesPerSecond> achieved;
};

struct ModelFigures {
  std::size_t model = 0;  // of BenchInput::models
  SweepResult sweep;      // at the smallest depth
  double decode = 0;      // at the operating point
  std::optional<double> decode_deviation;
  std::optional<double> bytes;  // weights, and the cache where the smallest depth is not 0
  std::optional<BytesPerSecond> achieved;
  std::optional<double> utilisation;  // over the ceiling; above 1: at or above it
  std::optional<double> bound;        // tokens/s that the ceiling would allow
  std::vector<DepthFigures> depths;   // where there are several
};

struct Spread {
  double min = 0;
  double median = 0;
  double max = 0;
};

struct Frontier {
  double size_ratio = 0;   // largest over smallest model
  double speed_ratio = 0;  // fastest's tokens/s over that of the largest
};

struct BenchAnalysis {
  std::vector<ModelFigures> models;  // those with a decode rate, in the order of the input
  std::optional<BandwidthFit> fit;
  std::optional<Spread> utilisation;
  std::optional<std::string> verdict;
  std::optional<Frontier> frontier;
  std::optional<unsigned> knee;
  std::optional<Spread> prefill_scaling;
  std::vector<std::string> warnings;
};

BenchAnalysis analyse_bench(const BenchInput& input);

// "72.5 %", or the words for what is no share.
std::string utilisation_text(double utilisation, CeilingSource source);

}  // namespace rooflined
