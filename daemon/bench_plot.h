// A benchmark as a picture (SVG): tokens/s of each model against 1 / its bytes per token, with the line of the fit and
// that of the ceiling. A memory-bound machine shows its models on one line through the origin. Threads: any.

#pragma once

#include "metrics/bench_analysis.h"

#include <string>

namespace rooflined::daemon {

// Empty where no model has both figures: there is nothing to draw.
std::string bench_plot(const BenchInput& input, const BenchAnalysis& analysis);

}  // namespace rooflined::daemon
