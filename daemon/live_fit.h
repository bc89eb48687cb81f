// From a scrape of the daemon to the input of the same analysis that a benchmark goes through: one point for each
// target and model, by its counters since they began.
//
//   bytes:  what a decode pass read, cache included       rate:  passes per second of decode
//
// With one sequence in decode, passes are tokens; with several, a pass still reads the weights once, so the line
// through the origin is the same. The text comes from outside: lines that are none are skipped. Pure; threads: any.

#pragma once

#include "metrics/base/result.h"
#include "metrics/bench_analysis.h"

#include <string>
#include <string_view>

namespace rooflined::daemon {

// Errors: kNotFound where it is no scrape of a rooflined that has seen any decode.
Result<BenchInput> live_fit_input(std::string_view scrape, const std::string& where);

}  // namespace rooflined::daemon
