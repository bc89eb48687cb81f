// The engine's ground truth as one JSON object, for /sim/truth.

#pragma once

#include "tests/simulator/engine.h"
#include "tests/simulator/paced_engine.h"

#include <string>

namespace rooflined::simulator {

// Ratios without a denominator are null.
std::string truth_json(const PacedReport& report, const EngineOptions& options, const std::string& model);

}  // namespace rooflined::simulator
