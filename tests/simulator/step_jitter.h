// How much longer or shorter than planned a step takes: lognormal factors of mean 1, one after the other correlated.
//
// Thread rule: one thread.

#pragma once

#include <cmath>
#include <random>

namespace rooflined::simulator {

struct JitterOptions {
  double variation = 0;       // coefficient of variation, standard deviation ÷ mean
  double correlation = 0;     // of one factor's logarithm with the next one's, in [0, 1)
  double period_seconds = 0;  // a factor holds for so long; 0: for one step
};

class StepJitter {
 public:
  explicit StepJitter(const JitterOptions& options)
      : options_(options), sigma_(std::sqrt(std::log1p(options.variation * options.variation))) {}

  // The factor of a step that is planned to take `seconds`.
  double factor(double seconds, std::mt19937_64& random) {
    if (sigma_ == 0) return 1;
    if (left_seconds_ <= 0) {
      draw(random);
      left_seconds_ += options_.period_seconds;
    }
    left_seconds_ -= seconds;
    if (options_.period_seconds == 0) left_seconds_ = 0;
    // exp(N(−σ²/2, σ)) has the mean 1.
    return std::exp(sigma_ * state_ - sigma_ * sigma_ / 2);
  }

 private:
  void draw(std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    const double fresh = normal(random);
    const double rho = options_.correlation;
    state_ = begun_ ? rho * state_ + std::sqrt(1 - rho * rho) * fresh : fresh;
    begun_ = true;
  }

  JitterOptions options_;
  double sigma_;
  double state_ = 0;  // standard normal
  bool begun_ = false;
  double left_seconds_ = 0;
};

}  // namespace rooflined::simulator
