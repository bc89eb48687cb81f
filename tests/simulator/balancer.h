// Sends each request to one of several replicas. Thread rule: any.

#pragma once

#include "tests/simulator/server_options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <vector>

namespace rooflined::simulator {

class Balancer {
 public:
  // Requires: replicas ≥ 1.
  Balancer(std::size_t replicas, Balance balance, std::uint64_t seed)
      : balance_(balance), random_(seed), in_flight_(replicas, 0) {}

  // The replica of a new request. leave() it when the request has ended.
  std::size_t enter() {
    const std::lock_guard lock(mutex_);
    const std::size_t chosen =
        balance_ == Balance::kRandom
            ? std::uniform_int_distribution<std::size_t>(0, in_flight_.size() - 1)(random_)
            : static_cast<std::size_t>(std::ranges::min_element(in_flight_) - in_flight_.begin());
    ++in_flight_[chosen];
    return chosen;
  }
  void leave(std::size_t replica) {
    const std::lock_guard lock(mutex_);
    --in_flight_[replica];
  }

 private:
  std::mutex mutex_;
  Balance balance_;
  std::mt19937_64 random_;              // guarded by mutex_
  std::vector<std::size_t> in_flight_;  // guarded by mutex_
};

}  // namespace rooflined::simulator
