#include "metrics/step_integral.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

#include <random>
#include <vector>

using namespace rooflined;
using rooflined::test::at_ms;

TEST_CASE("steps added in any order integrate as if in order") {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> time(0, 500);
  for (int round = 0; round < 50; ++round) {
    StepIntegral value(StepIntegral::Kind::kValue);
    StepIntegral indicator(StepIntegral::Kind::kIndicator);
    std::vector<int> level(501, 0);
    for (int i = 0; i < 40; ++i) {
      int from = time(random);
      int to = time(random);
      if (from > to) std::swap(from, to);
      for (StepIntegral* steps : {&value, &indicator}) {
        steps->add(at_ms(from), 1);
        steps->add(at_ms(to), -1);
      }
      for (int t = from; t < to; ++t) ++level[static_cast<std::size_t>(t)];
    }
    int a = time(random);
    int b = time(random);
    if (a > b) std::swap(a, b);
    double sum = 0;
    double above = 0;
    for (int t = a; t < b; ++t) {
      sum += level[static_cast<std::size_t>(t)];
      above += level[static_cast<std::size_t>(t)] > 0 ? 1 : 0;
    }
    CHECK(value.integral(at_ms(a), at_ms(b)) == Approx(sum * 1e6));
    CHECK(indicator.integral(at_ms(a), at_ms(b)) == Approx(above * 1e6));
    const int limit = std::min(a, 400);
    value.forget_before(at_ms(limit));
    CHECK(value.integral(at_ms(a), at_ms(b)) == Approx(sum * 1e6));
  }
}
