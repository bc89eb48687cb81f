// Which results become the ceiling: against contention, drops, lucky and wrong ones.

#include "collectors/ceiling/history.h"

#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;

namespace {

using Judgement = History::Judgement;

ConfirmedResult result(double gigabytes_per_second) {
  ConfirmedResult result;
  result.measured_at = WallTime::from_ns(1'700'000'000'000'000'000);
  result.ceiling = gigabytes_per_second * 1e9;
  result.median = 0.9 * result.ceiling;
  result.kernel = "linear";
  result.threads = 2;
  return result;
}

double adopted(const History& history) {
  return history.adopted()->ceiling / 1e9;
}

History history_of(const std::vector<double>& rates) {
  History history;
  for (const double rate : rates) history.take(result(rate));
  return history;
}

}  // namespace

TEST_CASE("adopted is the second highest of the last eight; far ones wait for a second one") {
  struct Row {
    std::string name;
    std::vector<double> rates;
    double adopted;
    std::size_t kept;
    std::size_t suspects;
    bool newest_is_suspect;
  };
  const std::vector<Row> rows = {
      {"one counts, in doubt", {30}, 30, 1, 0, true},
      {"of two the lower", {30, 32}, 30, 2, 0, false},
      {"the order does not matter", {32, 30}, 30, 2, 0, false},
      {"of three the middle one", {30, 32, 31}, 31, 3, 0, false},
      {"the oldest are forgotten", {36, 36, 30, 31, 32, 33, 34, 35, 36, 37}, 36, 8, 0, false},
      {"0.75 of the adopted is not suspect", {40, 40, 30}, 40, 3, 0, false},
      {"less is", {40, 40, 29.9}, 40, 2, 1, true},
      {"1.33 of the adopted is not suspect", {40, 40, 53.2}, 40, 3, 0, false},
      {"more is", {40, 40, 53.3}, 40, 2, 1, true},
      {"a first result made under load, and two that were not", {9.3, 31, 30.5}, 30.5, 3, 0, false},
      {"the second high one comes later", {9.3, 31, 9.4, 9.2, 31}, 31, 5, 0, false},
      {"a low one alone is forgotten", {40, 40, 20, 40, 20.1}, 40, 3, 1, true},
      {"low ones that do not agree", {40, 40, 20, 25, 15}, 40, 2, 1, true},
      {"low ones that agree count once for two", {40, 40, 20, 20.1}, 40, 3, 0, false},
      {"a high one does not hide a low one", {40, 40, 80, 20}, 40, 2, 2, true},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const History history = history_of(row.rates);
    CHECK(adopted(history) == Approx(row.adopted));
    CHECK(history.results().size() == row.kept);
    CHECK(history.suspects().size() == row.suspects);
    CHECK(history.newest_is_suspect() == row.newest_is_suspect);
  }
  CHECK(History().adopted() == nullptr);
  CHECK_FALSE(History().newest_is_suspect());
}

TEST_CASE("a high result that nothing backs is forgotten after eight others") {
  History history = history_of({40, 40, 80});
  for (int i = 0; i < 9; ++i) CHECK(history.take(result(40)) == Judgement::kAdopted);
  CHECK(history.take(result(80)) == Judgement::kSuspect);
  CHECK(adopted(history) == Approx(40));
}

TEST_CASE("D19: constant background load keeps the old ceiling") {
  History history = history_of({50.7, 50.7, 50.6});
  CHECK(history.take(result(14.1)) == Judgement::kSuspect);
  CHECK(history.newest_is_low());
  for (const double rate : {13.9, 14.0, 13.8, 14.1, 13.9}) {
    history.take(result(rate));
    CHECK(adopted(history) == Approx(50.7));
  }
}

TEST_CASE("contention in half of forty windows: the adopted value is the memory's") {
  constexpr double kTruth = 31;
  int wrong_at_end = 0;
  int wrong_later = 0;
  int windows_later = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> contended(0.3, 0.95);
    std::normal_distribution<double> noise(1, 0.015);
    History history;
    for (int window = 0; window < 40; ++window) {
      const double share = random() % 2 == 0 ? contended(random) : 1;
      history.take(result(kTruth * share * noise(random)));
      const bool wrong = std::abs(adopted(history) / kTruth - 1) > 0.05;
      if (window == 39) wrong_at_end += wrong ? 1 : 0;
      if (window < 12) continue;
      wrong_later += wrong ? 1 : 0;
      ++windows_later;
    }
  }
  INFO("of 2000 runs, wrong at the end: " << wrong_at_end << "; of " << windows_later
                                          << " windows after the twelfth: " << wrong_later);
  CHECK(wrong_at_end <= 2);
  CHECK(wrong_later <= windows_later / 500);
}

TEST_CASE("a drop of a fifth is followed within eight windows, a rise at the second") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(1, 0.01);
    History history;
    for (int window = 0; window < 20; ++window) history.take(result(31 * noise(random)));
    for (int window = 0; window < 8; ++window) history.take(result(0.8 * 31 * noise(random)));
    INFO("seed " << seed << ": " << adopted(history));
    CHECK(std::abs(adopted(history) / (0.8 * 31) - 1) < 0.05);
    for (int window = 0; window < 2; ++window) history.take(result(31 * noise(random)));
    CHECK(std::abs(adopted(history) / 31 - 1) < 0.05);
  }
}

TEST_CASE("a drop to half is followed, too, though every second result only backs the one before") {
  History history = history_of({40, 40, 40, 40, 40, 40, 40, 40});
  int windows = 0;
  while (adopted(history) > 21 && windows < 40) {
    history.take(result(20));
    ++windows;
  }
  CHECK(windows == 14);
}

TEST_CASE("ten idle runs: the adopted values lie within five per cent") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(1, 0.012);
    History history;
    double low = 1e9;
    double high = 0;
    for (int run = 0; run < 10; ++run) {
      history.take(result(31 * noise(random)));
      if (history.young()) continue;
      low = std::min(low, adopted(history));
      high = std::max(high, adopted(history));
    }
    CHECK(high / low < 1.05);
  }
}

TEST_CASE("what a file held counts and waits as before") {
  History history;
  history.restore_suspect(result(20));  // of nothing
  CHECK(history.suspects().empty());
  history.restore(result(40));
  history.restore(result(10));  // not judged again
  history.restore(result(41));
  CHECK(adopted(history) == Approx(40));
  history.restore_suspect(result(80));
  CHECK(history.newest_is_suspect());
  CHECK(history.take(result(79)) == Judgement::kAdopted);
  CHECK(adopted(history) == Approx(79));
}

TEST_CASE("memory nodes are those of the newest result that has them") {
  History history = history_of({60});
  CHECK(history.nodes().empty());
  ConfirmedResult measured = result(60);
  measured.nodes = {{0, 32e9, 31e9, true}, {2, 30e9, 29e9, true}};
  history.take(measured);
  measured.nodes[0].best = 33e9;
  history.take(measured);
  history.take(result(61));  // the winner alone
  REQUIRE(history.nodes().size() == 2);
  CHECK(history.nodes()[0].best == 33e9);
}
