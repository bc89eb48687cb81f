// A Prometheus histogram: fixed bounds, counts that only grow. Weights are whole numbers of observations.

#pragma once

#include "metrics/snapshot.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace rooflined {

class FixedHistogram {
 public:
  // Requires: `bounds` ascend and outlive the histogram.
  explicit FixedHistogram(std::span<const double> bounds) : bounds_(bounds) {
    data_.bucket_counts.assign(bounds.size() + 1, 0);
  }

  void observe(double value, std::uint64_t times = 1) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    data_.bucket_counts[static_cast<std::size_t>(bucket)] += times;
    data_.count += times;
    data_.sum += value * static_cast<double>(times);
  }

  const HistogramSnapshot& data() const { return data_; }

 private:
  std::span<const double> bounds_;
  HistogramSnapshot data_;
};

}  // namespace rooflined
