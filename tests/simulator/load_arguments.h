// The options that `load` and `slo` share.

#pragma once

#include "metrics/base/result.h"
#include "tests/simulator/load.h"
#include "tests/simulator/server_arguments.h"

#include <chrono>
#include <optional>
#include <string>

namespace rooflined::simulator {

struct LoadArguments {
  std::string url;
  PatternArguments pattern;
  bool stream = true;
  double slow_share = 0;
  double warm_up_seconds = 0;
  std::optional<double> ttft_seconds_max;
  std::optional<double> itl_seconds_max;
  std::uint64_t seed = 1;
};

// All but the pattern.
void add_load_options(CLI::App& command, LoadArguments& arguments);
// All but the duration.
Result<LoadOptions> load_options(const LoadArguments& arguments, const LoadPattern& pattern);

inline std::chrono::nanoseconds to_nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

}  // namespace rooflined::simulator
