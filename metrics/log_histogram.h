// Buckets of equal ratio (2 %), for quantiles of latencies: exact to 1 % between 1 µs and about 1,000 s.
//
// Weights are doubles, since a record spreads over k tokens. Sparse: an ITL window holds a handful of buckets. Not
// thread-safe.

#pragma once

#include <cstdint>
#include <vector>

namespace rooflined {

class LogHistogram {
 public:
  void add(double seconds, double weight);
  void add(const LogHistogram& other);
  void clear() {
    buckets_.clear();
    weight_ = 0;
    sum_ = 0;
  }

  double weight() const { return weight_; }
  // Requires: weight() > 0.
  double mean() const { return sum_ / weight_; }
  // The value below which `share` of the weight lies, 0 < share < 1. Requires: weight() > 0.
  double quantile(double share) const;

 private:
  struct Bucket {
    std::int32_t index;
    double weight;
  };

  void add_to_bucket(std::int32_t index, double weight);

  std::vector<Bucket> buckets_;  // ascending
  double weight_ = 0;
  double sum_ = 0;
};

}  // namespace rooflined
