// The engine's ground truth as one JSON object, for /sim/truth and for captures.

#pragma once

#include "tests/simulator/capture_run.h"
#include "tests/simulator/paced_engine.h"
#include "tests/simulator/server_options.h"

#include <string>

namespace rooflined::simulator {

// Ratios without a denominator are null. `options` as they are now.
std::string truth_json(const PacedReport& report, const ServerOptions& options);
std::string truth_json(const CaptureResult& result, const ServerOptions& options, std::uint64_t packets);

}  // namespace rooflined::simulator
