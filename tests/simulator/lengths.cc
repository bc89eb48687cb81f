#include "tests/simulator/lengths.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

namespace rooflined::simulator {
namespace {

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// A length: in range.
std::optional<double> tokens(std::string_view text) {
  const std::optional<double> value = number(text);
  if (!value || *value < 1 || *value > static_cast<double>(Lengths::kMax)) return std::nullopt;
  return value;
}

}  // namespace

Lengths Lengths::fixed(std::uint64_t tokens) {
  Lengths lengths;
  lengths.first_ = static_cast<double>(tokens);
  lengths.text_ = std::to_string(tokens);
  return lengths;
}

Result<Lengths> Lengths::parse(std::string_view text) {
  constexpr std::string_view kExponential = "exp:";
  constexpr std::string_view kLognormal = "lognormal:";
  const Error wrong{ErrorCode::kInvalid, std::string(text),
                    "a length is N, FROM-TO, exp:MEAN or lognormal:MEDIAN:SIGMA, of 1 to 1000000 tokens"};
  Lengths lengths;
  lengths.text_ = std::string(text);
  std::optional<double> first;
  std::optional<double> second = 0;
  if (text.starts_with(kExponential)) {
    lengths.kind_ = Kind::kExponential;
    first = tokens(text.substr(kExponential.size()));
  } else if (text.starts_with(kLognormal)) {
    lengths.kind_ = Kind::kLognormal;
    const std::string_view rest = text.substr(kLognormal.size());
    const std::size_t colon = std::min(rest.find(':'), rest.size() - 1);
    first = tokens(rest.substr(0, colon));
    second = number(rest.substr(colon + 1));
    if (second && (*second < 0 || *second > 10)) return wrong;
  } else if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    lengths.kind_ = Kind::kUniform;
    first = tokens(text.substr(0, dash));
    second = tokens(text.substr(dash + 1));
    if (first && second && *second < *first) return wrong;
  } else {
    first = tokens(text);
  }
  if (!first || !second) return wrong;
  lengths.first_ = *first;
  lengths.second_ = *second;
  return lengths;
}

std::uint64_t Lengths::draw(std::mt19937_64& random) const {
  double value = first_;
  switch (kind_) {
    case Kind::kFixed:
      break;
    case Kind::kUniform:
      value = std::floor(std::uniform_real_distribution<double>(first_, second_ + 1)(random));
      value = std::min(value, second_);
      break;
    case Kind::kExponential:
      value = std::exponential_distribution<double>(1 / first_)(random);
      break;
    case Kind::kLognormal:
      value = std::lognormal_distribution<double>(std::log(first_), second_)(random);
      break;
  }
  return static_cast<std::uint64_t>(std::clamp(std::round(value), 1.0, static_cast<double>(kMax)));
}

}  // namespace rooflined::simulator
