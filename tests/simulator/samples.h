// A set of measurements: exact count and mean, quantiles of a uniform sample of them.
//
// Bound: kKeptMax values; beyond that each new one replaces a kept one at random (reservoir sampling).

#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace rooflined::simulator {

class Samples {
 public:
  static constexpr std::size_t kKeptMax = std::size_t{1} << 21;

  void add(double value);
  std::uint64_t count() const noexcept { return count_; }
  // Requires: count() > 0.
  double mean() const { return sum_ / static_cast<double>(count_); }
  // Nearest rank; `share` in [0, 1]. Requires: count() > 0.
  double quantile(double share);

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::vector<float> kept_;
  bool sorted_ = true;
  std::minstd_rand random_;
};

}  // namespace rooflined::simulator
