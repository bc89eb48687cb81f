// The choice, with a script instead of memory: by median, confirmed by fresh repetitions, bounded in time.

#include "collectors/ceiling/sweep.h"

#include "tests/support/catch.h"

#include <chrono>
#include <deque>
#include <map>
#include <utility>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;

namespace {

constexpr double kGigabyte = 1e9;

// Rates in GB/s by kernel and threads, over a second each; the last one repeats. The first of each is the repetition
// that is discarded.
class Script : public RepetitionSource {
 public:
  std::map<std::pair<std::size_t, unsigned>, std::deque<double>> rates;
  std::vector<std::pair<std::size_t, unsigned>> calls;
  std::size_t fail_at = SIZE_MAX;
  unsigned still_clock = 0;  // this many repetitions take no time

  Result<Repetition> repeat(std::size_t kernel, unsigned threads) override {
    if (calls.size() == fail_at) return Error{ErrorCode::kBusy, "stopped", ""};
    calls.emplace_back(kernel, threads);
    if (still_clock > 0) {
      --still_clock;
      return Repetition{536870912, Duration(0)};
    }
    auto& queue = rates[{kernel, threads}];
    const double rate = queue.empty() ? 10 : queue.front();
    if (queue.size() > 1) queue.pop_front();
    return Repetition{static_cast<Bytes>(rate * kGigabyte), std::chrono::seconds(1)};
  }
};

SweepOptions options(std::vector<std::size_t> kernels, std::vector<unsigned> counts) {
  SweepOptions options;
  options.kernels = std::move(kernels);
  options.thread_counts = std::move(counts);
  options.budget = from_seconds(1000);
  return options;
}

const Cell& cell_of(const Sweep& sweep, std::size_t kernel, unsigned threads) {
  for (const Cell& cell : sweep.cells) {
    if (cell.kernel == kernel && cell.threads == threads) return cell;
  }
  FAIL("no such cell");
  return sweep.cells.front();
}

}  // namespace

TEST_CASE("median") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 2.5);
}

TEST_CASE("a cell is stable when its median is at least three quarters of its best") {
  struct Row {
    std::vector<double> rates;  // counted ones
    bool stable;
  };
  const std::vector<Row> rows = {
      {{8, 8, 8, 8, 8}, true}, {{8, 6, 6, 6, 8}, true},  // exactly 0.75
      {{1, 6, 6, 8, 8}, true}, {{8, 5.99, 5.99, 5.99, 8}, false}, {{1, 1, 1, 1, 8}, false},
  };
  for (const Row& row : rows) {
    Script script;
    std::deque<double> rates(row.rates.begin(), row.rates.end());
    rates.push_front(100);  // discarded
    script.rates[{0, 1}] = rates;
    const auto cell = run_cell(0, 1, 5, script, nullptr);
    REQUIRE(cell.ok());
    CHECK(cell->samples.size() == 5);
    CHECK(cell->best == Approx(8e9));
    CHECK(cell->stable == row.stable);
  }
}

TEST_CASE("the highest median wins, not the highest best") {
  Script script;
  script.rates[{0, 2}] = {1, 20, 20, 20, 20, 20};
  script.rates[{1, 2}] = {1, 25, 19, 19, 19, 19};
  script.rates[{2, 2}] = {1, 21, 21, 21, 22, 21, /* discarded */ 1, 22, 21, 20};
  const auto sweep = run_sweep(options({0, 1, 2}, {2}), script, nullptr);
  REQUIRE(sweep.ok());
  REQUIRE(sweep->confirmed());
  CHECK(sweep->confirmation->kernel == 2);
  CHECK(sweep->confirmation->best == Approx(22e9));
  CHECK(sweep->confirmation->samples.size() == 9);
  CHECK(sweep->confirmation->median == Approx(20e9));
  for (const Cell& cell : sweep->cells) CHECK(cell.samples.size() == 5);
}

TEST_CASE("an unstable cell never wins") {
  Script script;
  script.rates[{0, 1}] = {1, 10};
  script.rates[{1, 1}] = {1, 40, 40, 40, 80, 80};
  const auto sweep = run_sweep(options({0, 1}, {1}), script, nullptr);
  REQUIRE(sweep.ok());
  CHECK_FALSE(cell_of(*sweep, 1, 1).stable);
  CHECK(sweep->confirmation->kernel == 0);
}

TEST_CASE("the ceiling is of the fresh repetitions, not of the sweep") {
  Script script;
  script.rates[{0, 1}] = {1, 30, 30, 30, 30, 30, 1, 24, 25, 26, 24};
  const auto sweep = run_sweep(options({0}, {1}), script, nullptr);
  REQUIRE(sweep.ok());
  CHECK(sweep->confirmation->best == Approx(26e9));
  CHECK(sweep->confirmed());
}

TEST_CASE("a winner that is not stable again is no ceiling") {
  Script script;
  script.rates[{0, 1}] = {1, 30, 30, 30, 30, 30, 1, 40, 20};
  const auto sweep = run_sweep(options({0}, {1}), script, nullptr);
  REQUIRE(sweep.ok());
  CHECK(sweep->confirmation);
  CHECK_FALSE(sweep->confirmed());
}

TEST_CASE("no stable cell, no confirmation") {
  Script script;
  script.rates[{0, 1}] = {1, 10, 10, 10, 30, 10};
  const auto sweep = run_sweep(options({0}, {1}), script, nullptr);
  REQUIRE(sweep.ok());
  CHECK_FALSE(sweep->confirmation);
  CHECK(script.calls.size() == 6);
}

TEST_CASE("a sweep that starts from a winner proves it against its neighbours") {
  Script script;
  script.rates[{1, 4}] = {20};
  script.rates[{1, 8}] = {24};
  auto from = options({0, 1, 2}, {1, 2, 4, 8, 16});
  from.start = SweepStart{1, 4, false};
  const auto sweep = run_sweep(from, script, nullptr);
  REQUIRE(sweep.ok());
  // Two other kernels at four threads, and its own with two and eight.
  CHECK(sweep->cells.size() == 5);
  CHECK(cell_of(*sweep, 0, 4).samples.size() == 5);
  CHECK(cell_of(*sweep, 2, 4).samples.size() == 5);
  CHECK(cell_of(*sweep, 1, 2).samples.size() == 5);
  CHECK(sweep->confirmation->kernel == 1);
  CHECK(sweep->confirmation->threads == 8);
}

TEST_CASE("a winner alone is only confirmed") {
  Script script;
  auto from = options({0, 1, 2}, {1, 2, 4});
  from.start = SweepStart{2, 3, true};
  const auto sweep = run_sweep(from, script, nullptr);
  REQUIRE(sweep.ok());
  CHECK(sweep->cells.empty());
  CHECK(sweep->confirmed());
  CHECK(sweep->confirmation->threads == 3);
  CHECK(script.calls.size() == 10);
}

TEST_CASE("thread counts that clearly lose are left out of the other kernels") {
  Script script;
  script.rates[{0, 1}] = {5};
  script.rates[{0, 4}] = {20};
  script.rates[{0, 8}] = {19};
  script.rates[{1, 4}] = {18};
  script.rates[{1, 8}] = {23};
  const auto sweep = run_sweep(options({0, 1}, {1, 4, 8}), script, nullptr);
  REQUIRE(sweep.ok());
  CHECK(sweep->cells.size() == 5);
  CHECK(sweep->confirmation->kernel == 1);
  CHECK(sweep->confirmation->threads == 8);
}

TEST_CASE("cells take turns, so that a disturbance meets all of them") {
  Script script;
  const auto sweep = run_sweep(options({0, 1, 2}, {1}), script, nullptr);
  REQUIRE(sweep.ok());
  REQUIRE(script.calls.size() == 6 + 12 + 10);
  CHECK(script.calls[6].first == 1);
  CHECK(script.calls[7].first == 2);
  CHECK(script.calls[8].first == 1);
}

TEST_CASE("kernels that no longer fit the budget are left out, the confirmation is not") {
  Script script;
  script.rates[{0, 1}] = {1};  // one second each: 6 for the first kernel, 10 for the confirmation, 6 for each other one
  auto limited = options({0, 1, 2, 3}, {1});
  limited.budget = from_seconds(23);
  const auto sweep = run_sweep(limited, script, nullptr);
  REQUIRE(sweep.ok());
  CHECK(sweep->kernels_left_out == 2);
  CHECK(sweep->cells.size() == 2);
  CHECK(sweep->confirmed());
}

TEST_CASE("a repetition in which the clock stood still is discarded, never infinite") {
  Script script;
  script.still_clock = 3;
  const auto sweep = run_sweep(options({0}, {1}), script, nullptr);
  REQUIRE(sweep.ok());
  CHECK(sweep->repetitions_discarded == 3);
  CHECK(sweep->confirmation->best == Approx(10e9));
  script.still_clock = 1000;
  CHECK(run_sweep(options({0}, {1}), script, nullptr).error().where == "clock");
}

TEST_CASE("an error of the source ends the sweep, wherever it comes") {
  for (std::size_t at = 0; at < 22; ++at) {
    Script script;
    script.fail_at = at;
    const auto sweep = run_sweep(options({0, 1}, {1}), script, nullptr);
    REQUIRE_FALSE(sweep.ok());
    CHECK(sweep.error().code == ErrorCode::kBusy);
    CHECK(script.calls.size() == at);
  }
}

TEST_CASE("progress counts up to its total") {
  Script script;
  Progress last;
  unsigned calls = 0;
  const auto sweep = run_sweep(options({0, 1}, {1, 2}), script, [&](const Progress& progress) {
    CHECK(progress.done == last.done + 1);
    CHECK(progress.done <= progress.total);
    last = progress;
    ++calls;
  });
  REQUIRE(sweep.ok());
  CHECK(last.done == last.total);
  CHECK(calls == script.calls.size());
}
