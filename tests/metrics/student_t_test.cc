#include "metrics/student_t.h"

#include "tests/support/catch.h"

#include <cmath>

using namespace rooflined;

// Published tables to 10 digits; of the last two, the expansion about the normal quantile (Abramowitz and
// Stegun 26.7.5).
TEST_CASE("quantiles are those of the tables") {
  struct Row {
    double p;
    double degrees;
    double quantile;
  };
  const Row rows[] = {
      {0.995, 1, 63.65674116},  {0.995, 2, 9.924843201},    {0.995, 3, 5.840909310},   {0.995, 5, 4.032142984},
      {0.995, 10, 3.169272673}, {0.995, 30, 2.749995654},   {0.995, 120, 2.617421145}, {0.975, 4, 2.776445105},
      {0.95, 1e6, 1.644855151}, {0.995, 1999, 2.578291020},
  };
  for (const Row& row : rows) {
    INFO(row.p << " " << row.degrees);
    CHECK(student_t_quantile(row.p, row.degrees) == Approx(row.quantile).epsilon(1e-8));
  }
  CHECK(student_t_quantile(0.5, 7) == Approx(0).margin(1e-9));
}

TEST_CASE("degrees of freedom need not be whole, and may be near 0") {
  CHECK(student_t_quantile(0.995, 2.5) < student_t_quantile(0.995, 2));
  CHECK(student_t_quantile(0.995, 2.5) > student_t_quantile(0.995, 3));
  CHECK(student_t_quantile(0.995, 0.5) > 1000);
  CHECK(std::isinf(student_t_quantile(0.995, 0.01)));
}
