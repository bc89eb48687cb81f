#include "metrics/time_spans.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using rooflined::test::at_ms;

TEST_CASE("spans that touch are one, in whatever order they come") {
  TimeSpans spans;
  spans.add(at_ms(10), at_ms(20));
  spans.add(at_ms(40), at_ms(50));
  spans.add(at_ms(20), at_ms(25));
  CHECK_FALSE(spans.overlaps(at_ms(25), at_ms(40)));
  spans.add(at_ms(22), at_ms(45));
  CHECK(spans.overlaps(at_ms(30), at_ms(31)));
  CHECK(spans.first_after(at_ms(5)) == at_ms(10));
  CHECK(spans.first_after(at_ms(20)) == at_ms(20));
  CHECK(spans.first_after(at_ms(49)) == at_ms(49));
  CHECK_FALSE(spans.first_after(at_ms(50)));
}

TEST_CASE("a span holds its end and not its beginning") {
  TimeSpans spans;
  spans.add(at_ms(10), at_ms(20));
  CHECK_FALSE(spans.overlaps(at_ms(0), at_ms(10)));
  CHECK(spans.overlaps(at_ms(0), at_ms(11)));
  CHECK(spans.overlaps(at_ms(19), at_ms(30)));
  CHECK_FALSE(spans.overlaps(at_ms(20), at_ms(30)));
  spans.add(at_ms(30), at_ms(30));
  CHECK_FALSE(spans.overlaps(at_ms(25), at_ms(35)));
}

TEST_CASE("what is old is forgotten") {
  TimeSpans spans;
  spans.add(at_ms(10), at_ms(20));
  spans.add(at_ms(30), at_ms(40));
  spans.forget_before(at_ms(20));
  CHECK_FALSE(spans.overlaps(at_ms(0), at_ms(25)));
  CHECK(spans.overlaps(at_ms(30), at_ms(40)));
}

TEST_CASE("beyond the bound gaps are closed, none is opened") {
  TimeSpans spans;
  for (std::size_t i = 0; i < 2 * TimeSpans::kSpansMax; ++i) {
    spans.add(at_ms(static_cast<double>(2 * i)), at_ms(static_cast<double>(2 * i + 1)));
  }
  const double last = 4.0 * TimeSpans::kSpansMax - 2;
  CHECK(spans.overlaps(at_ms(0), at_ms(1)));
  CHECK(spans.overlaps(at_ms(1), at_ms(2)));  // a gap once
  CHECK(spans.overlaps(at_ms(last), at_ms(last + 1)));
  CHECK_FALSE(spans.overlaps(at_ms(last - 1), at_ms(last)));
}
