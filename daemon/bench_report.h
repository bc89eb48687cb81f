// A benchmark for people: a table in the terminal, and Markdown. Threads: any.

#pragma once

#include "metrics/bench_analysis.h"

#include <string>

namespace rooflined::daemon {

std::string bench_table(const BenchInput& input, const BenchAnalysis& analysis);

// `plot` is the name of the picture's file, empty where there is none.
std::string bench_markdown(const BenchInput& input, const BenchAnalysis& analysis, const std::string& plot);

}  // namespace rooflined::daemon
