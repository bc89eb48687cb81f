#include "tests/simulator/option_units.h"

#include <cmath>
#include <cstdlib>
#include <map>

namespace rooflined::simulator {
namespace {

CLI::Validator finite(const char* name, bool (*holds)(double), const char* wanted) {
  return CLI::Validator(
      [holds, wanted](std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool good = end != text.c_str() && *end == '\0' && std::isfinite(value) && holds(value);
        return good ? std::string() : wanted + (": " + text);
      },
      name);
}

}  // namespace

CLI::Validator bytes_unit() {
  const std::map<std::string, double> units = {{"B", 1},     {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                                               {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
  return CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::CASE_INSENSITIVE, "BYTES");
}

CLI::Validator duration_unit() {
  const std::map<std::string, double> units = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                                               {"s", 1},     {"m", 60},    {"h", 3600}};
  return CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED, "DURATION");
}

CLI::Validator above_zero() {
  return finite(
      "POSITIVE", [](double value) { return value > 0; }, "must be above 0");
}

CLI::Validator zero_or_more() {
  return finite(
      "NONNEGATIVE", [](double value) { return value >= 0; }, "must be 0 or more");
}

}  // namespace rooflined::simulator
