#include "metrics/pace_history.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using rooflined::test::at_ms;

TEST_CASE("work is laid back at the pace of the streams that ran then") {
  PaceHistory pace;
  // In second 1 a token took 10 ms, in second 2 it took 40 ms.
  for (int i = 0; i < 100; ++i) pace.add(at_ms(1005 + 10 * i), 1, 0.01);
  for (int i = 0; i < 25; ++i) pace.add(at_ms(2020 + 40 * i), 1, 0.04);
  CHECK(pace.start_of(at_ms(3000), at_ms(0), 10) == at_ms(2600));
  // 25 tokens in second 2, and 50 in half of second 1.
  CHECK(pace.start_of(at_ms(3000), at_ms(0), 75) == at_ms(1500));
}

TEST_CASE("work is never laid back beyond its request") {
  PaceHistory pace;
  for (int i = 0; i < 100; ++i) pace.add(at_ms(1005 + 10 * i), 1, 0.01);
  CHECK(pace.start_of(at_ms(2000), at_ms(1700), 1000) == at_ms(1700));
  CHECK(pace.start_of(at_ms(2000), at_ms(2500), 10) == at_ms(2000));
}

TEST_CASE("where no stream ever ran, work took all the time since its request") {
  const PaceHistory pace;
  CHECK(pace.start_of(at_ms(2000), at_ms(500), 10) == at_ms(500));
}

TEST_CASE("through a pause the last pace before it holds") {
  PaceHistory pace;
  for (int i = 0; i < 50; ++i) pace.add(at_ms(1010 + 20 * i), 1, 0.02);
  CHECK(pace.start_of(at_ms(60'000), at_ms(0), 10) == at_ms(59'800));
}
