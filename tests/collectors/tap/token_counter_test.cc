#include "collectors/tap/token_counter.h"

#include "tests/support/catch.h"

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace rooflined::tap {
namespace {

ChoiceFacts text(std::optional<std::uint64_t> cumulative = {}) {
  ChoiceFacts facts;
  facts.has_text = true;
  facts.cumulative = cumulative;
  return facts;
}

}  // namespace

TEST_CASE("the counter is believed before the list, the list before the text") {
  TokenCounter counter;
  ChoiceFacts facts = text();
  CHECK(counter.count(facts, {}).tokens == 1);
  facts.ids = 3;
  CHECK(counter.count(facts, {}).tokens == 3);
  facts.logprobs = 4;
  CHECK(counter.count(facts, {}).source == TokenSource::kExactLive);
  CHECK(counter.counted() == 8);
  facts.cumulative = 10;
  CHECK(counter.count(facts, {}).tokens == 2);
  CHECK(counter.counted() == 10);
}

TEST_CASE("a counter on the finishing frame alone is a total") {
  TokenCounter counter;
  counter.count(text(), {});
  ChoiceFacts facts;
  facts.finished = true;
  facts.cumulative = 9;
  CHECK(counter.count(facts, {}).tokens == 0);
  CHECK(counter.counted() == 1);
  CHECK(counter.cumulative() == 9);
}

TEST_CASE("a counter makes good what a gap took") {
  TokenCounter counter;
  counter.count(text(1), {});
  CHECK(counter.count(text(7), {}).tokens == 6);
}

TEST_CASE("joined late: what the counter held before is nobody's") {
  TokenCounter counter;
  const TokenCounter::Context late{.joined_late = true};
  CHECK(counter.count(text(500), late).tokens == 1);
  CHECK(counter.count(text(503), late).tokens == 3);
  CHECK(counter.counted() == 4);
}

TEST_CASE("shares are whole, in proportion, and sum up") {
  struct Row {
    std::uint64_t total;
    std::vector<std::uint64_t> counted;
    std::vector<std::uint64_t> shares;
  };
  const std::vector<Row> rows = {
      {7, {4, 3}, {4, 3}}, {9, {4, 3}, {5, 4}}, {10, {1, 1, 1}, {4, 3, 3}}, {5, {0, 0}, {3, 2}},
      {1, {3, 4}, {0, 1}}, {0, {1, 2}, {0, 0}}, {3, {0, 5}, {0, 3}},
  };
  for (const Row& row : rows) {
    std::vector<std::uint64_t> shares(row.counted.size());
    apportion(row.total, row.counted, shares);
    CHECK(shares == row.shares);
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::uint64_t> counted(1 + random() % 20);
    for (auto& count : counted) count = random() % 1000;
    const std::uint64_t total = random() % kSequenceTokensMax;
    std::vector<std::uint64_t> shares(counted.size());
    apportion(total, counted, shares);
    REQUIRE(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}) == total);
  }
}

}  // namespace rooflined::tap
