// How long prompts and answers are: one number, or one drawn from a distribution.
//
//   "200"              always so many
//   "50-400"           any of them alike
//   "exp:200"          exponential, of that mean
//   "lognormal:200:1"  lognormal: median, and the standard deviation of the logarithm
//
// Thread rule: plain data.

#pragma once

#include "metrics/base/result.h"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace rooflined::simulator {

class Lengths {
 public:
  static constexpr std::uint64_t kMax = 1'000'000;

  static Lengths fixed(std::uint64_t tokens);
  static Result<Lengths> parse(std::string_view text);

  // In [1, kMax].
  std::uint64_t draw(std::mt19937_64& random) const;
  // As it was written.
  const std::string& text() const noexcept { return text_; }

 private:
  enum class Kind : std::uint8_t { kFixed, kUniform, kExponential, kLognormal };

  Kind kind_ = Kind::kFixed;
  double first_ = 1;
  double second_ = 0;
  std::string text_ = "1";
};

}  // namespace rooflined::simulator
