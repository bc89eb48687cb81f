#include "config/units.h"

#include <array>
#include <charconv>
#include <cmath>

namespace rooflined::config {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 6> kDurationUnits = {{
    {"ms", 1e-3},
    {"s", 1},
    {"m", 60},
    {"h", 3600},
    {"d", 86400},
    {"w", 7 * 86400},
}};

constexpr std::array<Unit, 12> kByteUnits = {{
    {"", 1},
    {"B", 1},
    {"kB", 1e3},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
    {"KiB", 1024.0},
    {"kiB", 1024.0},
    {"MiB", 1024.0 * 1024},
    {"GiB", 1024.0 * 1024 * 1024},
    {"TiB", 1024.0 * 1024 * 1024 * 1024},
}};

// The number in front, times the factor of the unit behind it; blanks may stand between them.
template <std::size_t kCount>
std::optional<double> parse_with_unit(std::string_view text, const std::array<Unit, kCount>& units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  while (name.starts_with(' ')) name.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name == name) return number * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  constexpr double kSecondsMax = 100.0 * 366 * 86400;
  const auto seconds = parse_with_unit(text, kDurationUnits);
  if (!seconds || *seconds > kSecondsMax) return std::nullopt;
  return Duration(static_cast<std::int64_t>(std::llround(*seconds * 1e9)));
}

std::optional<double> parse_bytes(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  const auto bytes = parse_with_unit(text, kByteUnits);
  if (!bytes || !std::isfinite(*bytes)) return std::nullopt;
  return bytes;
}

}  // namespace rooflined::config
