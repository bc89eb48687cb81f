#include "tests/simulator/lengths.h"

#include "tests/support/catch.h"

#include <cmath>
#include <random>

namespace rooflined::simulator {
namespace {

double mean_of(const char* text) {
  std::mt19937_64 random(1);
  const auto lengths = Lengths::parse(text);
  REQUIRE(lengths.ok());
  double sum = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) sum += static_cast<double>(lengths->draw(random));
  return sum / kDraws;
}

TEST_CASE("lengths have the mean that they say") {
  CHECK(mean_of("200") == 200);
  CHECK(mean_of("1-3") == Approx(2).margin(0.05));
  CHECK(mean_of("exp:200") == Approx(200).epsilon(0.05));
  CHECK(mean_of("lognormal:100:0.5") == Approx(100 * std::exp(0.125)).epsilon(0.05));
  CHECK(Lengths::fixed(7).text() == "7");
}

TEST_CASE("what is no length is refused") {
  const char* const text = GENERATE("", "0", "-5", "5-", "9-3", "1e3", "exp:", "exp:0", "lognormal:", "lognormal:5",
                                    "lognormal:5:", "lognormal:5:-1", "1000001", "x", "nan");
  CAPTURE(text);
  CHECK_FALSE(Lengths::parse(text).ok());
}

}  // namespace
}  // namespace rooflined::simulator
