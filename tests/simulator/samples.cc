#include "tests/simulator/samples.h"

#include <algorithm>
#include <cmath>

namespace rooflined::simulator {

void Samples::add(double value) {
  ++count_;
  sum_ += value;
  if (kept_.size() < kKeptMax) {
    kept_.push_back(static_cast<float>(value));
    sorted_ = false;
    return;
  }
  const auto place = std::uniform_int_distribution<std::uint64_t>(0, count_ - 1)(random_);
  if (place >= kKeptMax) return;
  kept_[static_cast<std::size_t>(place)] = static_cast<float>(value);
  sorted_ = false;
}

double Samples::quantile(double share) {
  if (!sorted_) std::sort(kept_.begin(), kept_.end());
  sorted_ = true;
  const double rank = std::ceil(share * static_cast<double>(kept_.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return static_cast<double>(kept_[std::min(index, kept_.size() - 1)]);
}

}  // namespace rooflined::simulator
