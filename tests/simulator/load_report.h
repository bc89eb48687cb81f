// What `load` and `slo` print about a load's result.

#pragma once

#include "tests/simulator/load.h"

#include <nlohmann/json.hpp>

namespace rooflined::simulator {

// Requests, tokens, rates, latencies. Sorts the samples.
nlohmann::ordered_json load_json(LoadResult& result);
void print_load_table(LoadResult& result);

}  // namespace rooflined::simulator
