#include "metrics/deploy_slices.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

#include <cmath>

using namespace rooflined;
using rooflined::test::at_ms;

namespace {

// One token in 100 ms at batch 2: 1000 bytes of its own share, so 20,000 bytes/s of the pass.
IntervalRecord interval(double end_ms) {
  IntervalRecord record;
  record.a = at_ms(end_ms - 100);
  record.b = at_ms(end_ms);
  record.tokens = 1;
  record.batch = 2;
  record.passes = 0.5;
  record.sequence_seconds = 0.1;
  record.busy_seconds = 0.05;
  record.context_sum = 300;
  record.weights.dense = 1000;
  record.bytes_known = true;
  return record;
}

struct Bench {
  DeploySlices slices;

  // `count` intervals, each 100 ms, from `begin_ms` on.
  void decode(double begin_ms, int count) {
    for (int i = 1; i <= count; ++i) slices.add(interval(begin_ms + 100 * i));
  }
  std::vector<DeploySlice> take(double settled_ms, std::vector<const TimeSpans*> others = {}) {
    return slices.take_until(at_ms(settled_ms), others);
  }
};

}  // namespace

TEST_CASE("a slice has the medians of its intervals, and the batch and context at which they were") {
  Bench bench;
  bench.decode(0, 45);
  for (int i = 0; i < 10; ++i) {  // stalls move no median
    IntervalRecord stalled = interval(4600 + 100 * i);
    stalled.busy_seconds *= 50;
    stalled.sequence_seconds *= 50;
    bench.slices.add(stalled);
  }
  CHECK(bench.take(9'999).empty());
  const auto slices = bench.take(10'000);
  REQUIRE(slices.size() == 1);
  CHECK(slices[0].index == 0);
  CHECK(std::exp(slices[0].log_batch) == Approx(2));
  CHECK(std::exp(slices[0].log_context) == Approx(300));
  CHECK(std::exp(slices[0].log_itl) == Approx(0.1));
  REQUIRE(slices[0].bytes_known);
  CHECK(std::exp(slices[0].log_rate) == Approx(20'000));
  CHECK(bench.take(100'000).empty());  // taken once
}

TEST_CASE("a slice needs twenty intervals") {
  Bench bench;
  bench.decode(0, 19);
  bench.decode(10'000, 20);
  const auto slices = bench.take(30'000);
  REQUIRE(slices.size() == 1);
  CHECK(slices[0].index == 1);
}

TEST_CASE("intervals that something disturbed do not count") {
  Bench bench;
  SECTION("a prefill") {
    for (int i = 1; i <= 50; ++i) {
      IntervalRecord record = interval(100 * i);
      record.overlap_seconds = i % 2 == 0 ? 1e-4 : 0;
      if (record.overlap_seconds > 0) record.busy_seconds *= 3;
      bench.slices.add(record);
    }
    const auto slices = bench.take(10'000);
    REQUIRE(slices.size() == 1);
    CHECK(std::exp(slices[0].log_rate) == Approx(20'000));
  }
  SECTION("another engine on the same memory") {
    bench.decode(0, 50);
    TimeSpans other;
    other.add(at_ms(0), at_ms(3200));
    CHECK(bench.take(10'000, {&other}).empty());  // 18 are left
    bench.decode(10'000, 50);
    CHECK(bench.take(20'000, {&other}).size() == 1);
  }
  SECTION("lost packets") {
    bench.decode(0, 50);
    bench.slices.spoil(at_ms(0), at_ms(3200));
    CHECK(bench.take(10'000).empty());
  }
}

TEST_CASE("while a client does not read, nothing counts") {
  Bench bench;
  bench.slices.client_stops(at_ms(1000));
  bench.slices.client_stops(at_ms(2000));
  bench.decode(0, 100);
  bench.slices.client_reads(at_ms(3000));
  CHECK(bench.take(10'000).empty());  // the other one still does not
  bench.slices.client_reads(at_ms(12'000));
  bench.decode(10'000, 30);  // it catches up
  CHECK(bench.take(20'000).empty());
  bench.decode(20'000, 30);
  CHECK(bench.take(30'000).size() == 1);
}

TEST_CASE("without a geometry a slice says the latency alone") {
  Bench bench;
  for (int i = 1; i <= 50; ++i) {
    IntervalRecord record = interval(100 * i);
    record.bytes_known = false;
    record.weights = {};
    bench.slices.add(record);
  }
  const auto slices = bench.take(10'000);
  REQUIRE(slices.size() == 1);
  CHECK_FALSE(slices[0].bytes_known);
  CHECK(std::exp(slices[0].log_itl) == Approx(0.1));
}

TEST_CASE("of many intervals a sample is kept, from all of the slice") {
  Bench bench;
  for (int i = 1; i <= 50'000; ++i) {
    IntervalRecord record = interval(0.199 * i);
    record.a = record.b;
    // Slower in the second half: the median lies between only if both halves are in the sample.
    record.sequence_seconds = i <= 25'000 ? 0.1 : 0.2;
    bench.slices.add(record);
  }
  const auto slices = bench.take(10'000);
  REQUIRE(slices.size() == 1);
  CHECK(std::exp(slices[0].log_itl) == Approx(0.15).margin(0.051));
}

TEST_CASE("slices that nobody takes are bounded, and late intervals find their slice") {
  Bench bench;
  for (int slice = 0; slice < 100; ++slice) bench.decode(10'000.0 * slice, 30);
  bench.slices.add(interval(999'000 - 10'000));  // one of the slice before
  bench.slices.add(interval(50));                // long gone
  const auto slices = bench.take(1'000'000);
  REQUIRE(slices.size() == 8);
  CHECK(slices.front().index == 92);
  CHECK(slices.back().index == 99);
}
