#include "tests/simulator/rate_search.h"

#include "tests/support/catch.h"

namespace rooflined::simulator {
namespace {

TEST_CASE("the boundary is found from below and from above") {
  const double boundary = GENERATE(0.013, 0.9, 1.0, 37.0, 5000.0);
  CAPTURE(boundary);
  RateSearch search({1, 0.05, 100});
  int trials = 0;
  while (const auto rate = search.next()) {
    search.take(*rate <= boundary);
    ++trials;
  }
  REQUIRE(search.highest());
  CHECK(search.is_found());
  CHECK(*search.highest() <= boundary);
  CHECK(*search.highest() >= boundary / 1.05);
  CHECK(trials < 25);
}

TEST_CASE("what never holds, or always does, ends with the trials") {
  RateSearch none({1, 0.05, 5});
  RateSearch all({1, 0.05, 5});
  for (int i = 0; i < 5; ++i) {
    REQUIRE(none.next());
    none.take(false);
    REQUIRE(all.next());
    all.take(true);
  }
  CHECK_FALSE(none.next());
  CHECK_FALSE(none.highest());
  CHECK_FALSE(all.next());
  CHECK(all.highest() == 16.0);
  CHECK_FALSE(all.is_found());
}

}  // namespace
}  // namespace rooflined::simulator
