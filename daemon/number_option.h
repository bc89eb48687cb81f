// A check for numbers on the command line: finite, in a range, and refused in words that fit on a line.

#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <string>

namespace rooflined::daemon {

inline CLI::Validator number_between(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        char* end = nullptr;
        const double number = std::strtod(text.c_str(), &end);
        const bool whole = end != text.c_str() && *end == '\0';
        if (whole && std::isfinite(number) && number >= low && number <= high) return std::string();
        return fmt::format("{} is not a number between {:g} and {:g}", text, low, high);
      },
      "NUMBER");
}

}  // namespace rooflined::daemon
