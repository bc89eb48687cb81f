#include "metrics/student_t.h"

#include <cmath>
#include <limits>

namespace rooflined {
namespace {

// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method. Converges fast for
// x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kPrecision = 1e-15;
  constexpr int kTermsMax = 10'000;
  const auto kept_apart = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / kept_apart(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kTermsMax; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / kept_apart(1 + even * d);
    c = kept_apart(1 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / kept_apart(1 + odd * d);
    c = kept_apart(1 + odd / c);
    fraction *= c * d;
    if (std::abs(c * d - 1) < kPrecision) break;
  }
  return fraction;
}

// I_x(a, b), regularised.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// P(T > t) for t ≥ 0.
double upper_tail(double t, double degrees) {
  return 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

}  // namespace

double student_t_quantile(double p, double degrees) {
  constexpr double kQuantileMax = 1e12;
  constexpr int kHalvings = 200;
  const double tail = 1 - p;
  if (upper_tail(kQuantileMax, degrees) > tail) return std::numeric_limits<double>::infinity();
  double low = 0;
  double high = 1;
  while (upper_tail(high, degrees) > tail) high *= 2;
  for (int i = 0; i < kHalvings && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (upper_tail(middle, degrees) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace rooflined
