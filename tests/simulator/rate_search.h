// Looks for the highest rate that still holds, by trials: doubles it until it does not, then halves the bracket.
//
// Pure: the caller makes the trials. Thread rule: one thread.

#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

namespace rooflined::simulator {

class RateSearch {
 public:
  struct Options {
    double first = 1;         // the first rate to try
    double precision = 0.05;  // of the answer
    std::size_t trials_max = 24;
  };

  explicit RateSearch(const Options& options) : options_(options), next_(options.first) {}

  // The rate to try now; nullopt: done.
  std::optional<double> next() const {
    if (trials_ >= options_.trials_max || is_found()) return std::nullopt;
    return next_;
  }
  // Requires: next() was tried.
  void take(bool holds) {
    ++trials_;
    (holds ? holds_ : fails_) = next_;
    if (std::isinf(fails_)) {
      next_ *= 2;
    } else if (holds_ == 0) {
      next_ /= 2;
    } else {
      next_ = (holds_ + fails_) / 2;
    }
  }

  // The highest rate that held; nullopt where none did.
  std::optional<double> highest() const { return holds_ > 0 ? std::optional<double>(holds_) : std::nullopt; }
  // Whether a rate that does not hold is within the precision of it.
  bool is_found() const { return fails_ - holds_ <= options_.precision * holds_; }

 private:
  Options options_;
  double next_;
  std::size_t trials_ = 0;
  double holds_ = 0;  // the highest that did; 0: none yet
  double fails_ = std::numeric_limits<double>::infinity();
};

}  // namespace rooflined::simulator
