// What to doubt in an analysis of benchmark runs, in words. Pure; threads: any.

#pragma once

#include "metrics/bench_analysis.h"

#include <string>
#include <vector>

namespace rooflined {

std::vector<std::string> bench_warnings(const BenchInput& input, const BenchAnalysis& analysis);

}  // namespace rooflined
