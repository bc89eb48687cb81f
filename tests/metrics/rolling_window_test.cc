#include "metrics/rolling_window.h"

#include "metrics/log_histogram.h"
#include "metrics/monotone_counter.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using rooflined::test::at_ms;

namespace {

IntervalRecord interval(double a_ms, double b_ms, double tokens) {
  IntervalRecord record;
  record.a = at_ms(a_ms);
  record.b = at_ms(b_ms);
  record.tokens = tokens;
  record.sequence_seconds = (b_ms - a_ms) / 1e3;
  record.busy_seconds = record.sequence_seconds;
  return record;
}

}  // namespace

TEST_CASE("a record lies in the slices that its time covers") {
  RollingWindow window(std::chrono::seconds(60));
  window.add_interval(interval(10'500, 13'500, 3));
  const auto tokens = [&](double end_ms, int span_s) {
    return window.view(at_ms(end_ms), std::chrono::seconds(span_s), at_ms(0)).sums.output_tokens;
  };
  CHECK(tokens(11'000, 1) == Approx(0.5));
  CHECK(tokens(12'000, 1) == Approx(1));
  CHECK(tokens(13'000, 1) == Approx(1));
  CHECK(tokens(14'000, 1) == Approx(0.5));
  CHECK(tokens(14'000, 10) == Approx(3));
  CHECK(tokens(13'999, 10) == Approx(2.5));
}

TEST_CASE("what is older than the span is gone, and a young target has a short window") {
  RollingWindow window(std::chrono::seconds(5));
  window.add_first_tokens(at_ms(100'500), 7);
  CHECK(window.view(at_ms(106'000), std::chrono::seconds(5), at_ms(0)).sums.output_tokens == 0);
  CHECK(window.view(at_ms(105'000), std::chrono::seconds(5), at_ms(0)).sums.output_tokens == 7);
  CHECK(window.view(at_ms(103'000), std::chrono::seconds(5), at_ms(100'000)).seconds == 3);
  CHECK(window.view(at_ms(100'900), std::chrono::seconds(5), at_ms(100'000)).seconds == 0);
}

TEST_CASE("a correction over a long past touches only the slices that are left") {
  RollingWindow window(std::chrono::seconds(10));
  window.add_first_tokens(at_ms(1'000'500), 1);
  IntervalRecord correction = interval(0, 1'000'000, 1000);
  window.add_correction(correction);
  const auto view = window.view(at_ms(1'001'000), std::chrono::seconds(10), at_ms(0));
  CHECK(view.sums.output_tokens == Approx(10).epsilon(0.01));
}

TEST_CASE("quantiles are true to a percent") {
  LogHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.add(i * 1e-4, 1);
  CHECK(histogram.quantile(0.5) == Approx(0.05).epsilon(0.011));
  CHECK(histogram.quantile(0.95) == Approx(0.095).epsilon(0.011));
  CHECK(histogram.quantile(0.99) == Approx(0.099).epsilon(0.011));
  CHECK(histogram.mean() == Approx(0.05005));
  histogram.add(0, 1);
  histogram.add(1e9, 1);
  CHECK(histogram.quantile(0.0001) <= 1e-6);
}

TEST_CASE("a counter never goes back; its debt is paid by what comes next") {
  MonotoneCounter counter;
  counter.add(10);
  counter.add(-4);
  CHECK(counter.value() == 10);
  CHECK(counter.settled() == 6);
  counter.add(3);
  CHECK(counter.value() == 10);
  counter.add(3);
  CHECK(counter.value() == 12);
}
