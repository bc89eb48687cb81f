// Goal: line time follows the stamps, except where somebody set the clock.

#include "collectors/tap/line_clock.h"

#include "tests/collectors/tap/recording.h"
#include "tests/support/catch.h"

namespace rooflined::tap {

namespace {

using test::capture_ms;
using test::line_ms;
using test::to_ms;

MonotonicTime mono_ms(std::int64_t ms) {
  return MonotonicTime::from_ns(ms * 1'000'000);
}

}  // namespace

TEST_CASE("a file: stamps are line times, until one goes back by more than a second", "[line_clock]") {
  LineClock clock;
  CHECK_FALSE(clock.latest());
  CHECK(to_ms(clock.stamp(capture_ms(5000))) == 5000);
  CHECK(to_ms(clock.stamp(capture_ms(4500))) == 4500);  // overtaken: it keeps its stamp
  CHECK(to_ms(*clock.latest()) == 5000);
  CHECK(to_ms(clock.stamp(capture_ms(4000))) == 4000);            // a second is not yet a step
  CHECK(to_ms(clock.stamp(capture_ms(3'600'000))) == 3'600'000);  // silence
  CHECK(clock.steps() == 0);

  CHECK(to_ms(clock.stamp(capture_ms(1000))) == 3'600'000);  // set back by an hour
  CHECK(to_ms(clock.stamp(capture_ms(1250))) == 3'600'250);
  CHECK(clock.steps() == 1);
}

TEST_CASE("live: the monotonic clock tells steps from silence", "[line_clock]") {
  LineClock clock;
  clock.observe(mono_ms(100));
  CHECK(to_ms(clock.stamp(capture_ms(50'000))) == 50'000);

  SECTION("an hour of silence is an hour") {
    for (std::int64_t ms = 200; ms <= 3'600'100; ms += 100) clock.observe(mono_ms(ms));
    CHECK(to_ms(clock.stamp(capture_ms(3'650'000))) == 3'650'000);
    CHECK(clock.steps() == 0);
  }
  SECTION("set forward by an hour, the line goes on") {
    clock.observe(mono_ms(200));
    CHECK(to_ms(clock.stamp(capture_ms(3'650'100))) == 50'100);
    CHECK(to_ms(clock.stamp(capture_ms(3'650'110))) == 50'110);
    CHECK(clock.steps() == 1);
  }
  SECTION("set back by an hour, the line goes on") {
    clock.observe(mono_ms(200));
    CHECK(to_ms(clock.stamp(capture_ms(50'100 - 3'600'000))) == 50'100);
    CHECK(clock.steps() == 1);
  }
  SECTION("set back by half an hour within an hour of silence: forward by its stamp, back by the clock") {
    for (std::int64_t ms = 200; ms <= 3'600'100; ms += 100) clock.observe(mono_ms(ms));
    CHECK(to_ms(clock.stamp(capture_ms(50'000 + 1'800'000))) == 3'650'000);
    CHECK(clock.steps() == 1);
  }
  SECTION("a reader that was stopped for ten seconds finds old packets, and that is no step") {
    clock.observe(mono_ms(10'100));
    CHECK(to_ms(clock.stamp(capture_ms(50'020))) == 50'020);
    CHECK(to_ms(clock.stamp(capture_ms(59'900))) == 59'900);
    CHECK(clock.steps() == 0);
  }
  SECTION("half a second either way stays on the bytes") {
    clock.observe(mono_ms(200));
    CHECK(to_ms(clock.stamp(capture_ms(49'600))) == 49'600);
    CHECK(to_ms(clock.stamp(capture_ms(50'600))) == 50'600);
    CHECK(clock.steps() == 0);
  }
}

TEST_CASE("live: time goes on without packets, behind the slowest delivery", "[line_clock]") {
  LineClock clock;
  CHECK_FALSE(clock.now(mono_ms(0)));
  clock.observe(mono_ms(1000));
  CHECK_FALSE(clock.now(mono_ms(1000)));
  clock.stamp(capture_ms(70'000));
  CHECK(to_ms(*clock.now(mono_ms(1000))) == 70'000);  // never before a packet that was delivered
  CHECK(to_ms(*clock.now(mono_ms(6000))) == 75'000 - LineClock::kDeliveryMax.count() / 1'000'000);
}

TEST_CASE("stamps at the ends of the scale do no harm", "[line_clock]") {
  for (const bool live : {false, true}) {
    LineClock clock;
    const std::int64_t ends[] = {INT64_MAX, INT64_MIN, 0, INT64_MAX, 1, INT64_MAX, INT64_MIN, INT64_MAX - 1};
    LineTime last = LineTime::from_ns(0);
    for (const std::int64_t stamp : ends) {
      if (live) clock.observe(mono_ms(1));
      clock.stamp(CaptureTime::from_ns(stamp));
      CHECK(*clock.latest() >= last);
      last = *clock.latest();
    }
  }
}

}  // namespace rooflined::tap
