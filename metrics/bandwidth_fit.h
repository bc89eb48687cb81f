// The law of a memory-bound decode as a line through the origin: tokens/s = bandwidth × (1 / bytes per token).
//
//   in:   points of models of different sizes
//   out:  the bandwidth by least squares, and R² against the mean of tokens/s
//
// R² against the mean compares with that of a line with an intercept; it is absent where all points are equally fast,
// and below zero where the mean tells more than the line. Pure; threads: any.

#pragma once

#include "metrics/base/units.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace rooflined {

struct FitPoint {
  double bytes = 0;  // per token
  double tokens_per_second = 0;
};

struct BandwidthFit {
  BytesPerSecond bandwidth = 0;
  std::optional<double> r_squared;
  std::size_t points = 0;
};

// Nothing with fewer than two points: one lies on every line through the origin that is drawn for it.
// Requires: bytes and tokens per second above zero and finite.
std::optional<BandwidthFit> fit_bandwidth(std::span<const FitPoint> points);

// The mean of the two middle ones of an even number; nothing of nothing.
std::optional<double> median_of(std::vector<double> values);

}  // namespace rooflined
