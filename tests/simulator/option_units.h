// Numbers with units on the command line: "50e9", "50GB", "2ms".

#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace rooflined::simulator {

// Decimal prefixes, as bandwidths have them: "50e9", "50GB".
CLI::Validator bytes_unit();
// To seconds; the unit is needed: "2ms", "10s", "1.5m".
CLI::Validator duration_unit();
// A finite number above 0 (or at least 0).
CLI::Validator above_zero();
CLI::Validator zero_or_more();

}  // namespace rooflined::simulator
