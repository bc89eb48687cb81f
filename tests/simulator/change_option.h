// What the command line says about changes in the course of a run.
//
//   "10m:efficiency=0.48,version=b10489-1234abcd"   a restart, for the version is another one
//   "300s:concurrency=1,output-tokens=50"
//
// Keys: bandwidth, efficiency, prefill-rate, overhead, restart (how long nobody is there), version (implies
// restart=1s), warm-up; of the load: concurrency, rate, prompt-tokens, output-tokens.

#pragma once

#include "metrics/base/result.h"
#include "tests/simulator/load_pattern.h"

#include <string>
#include <string_view>
#include <vector>

namespace rooflined::simulator {

// Of a server that has no load of its own: keys of the load are refused. Ascending in time.
Result<std::vector<Change>> parse_changes(const std::vector<std::string>& texts, bool with_load);

}  // namespace rooflined::simulator
