#include "tests/simulator/samples.h"

#include "tests/support/catch.h"

namespace rooflined::simulator {
namespace {

TEST_CASE("quantiles by nearest rank, in any order of arrival") {
  Samples samples;
  for (int i = 100; i >= 1; --i) samples.add(i);
  CHECK(samples.count() == 100);
  CHECK(samples.mean() == Approx(50.5));
  CHECK(samples.quantile(0.50) == Approx(50));
  CHECK(samples.quantile(0.99) == Approx(99));
  CHECK(samples.quantile(0) == Approx(1));
  CHECK(samples.quantile(1) == Approx(100));
  samples.add(1000);
  CHECK(samples.quantile(1) == Approx(1000));
}

TEST_CASE("beyond the bound quantiles come from a uniform sample") {
  Samples samples;
  const std::size_t count = Samples::kKeptMax + Samples::kKeptMax / 2;
  for (std::size_t i = 0; i < count; ++i) samples.add(static_cast<double>(i));
  CHECK(samples.count() == count);
  CHECK(samples.quantile(0.5) == Approx(static_cast<double>(count) / 2).epsilon(0.01));
}

}  // namespace
}  // namespace rooflined::simulator
