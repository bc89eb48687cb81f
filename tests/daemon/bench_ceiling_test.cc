// The ceiling of a benchmark, and defects D1 to D5 of the program that the workbench replaces: what a measurement alone
// cannot tell, and how much memory it takes.

#include "daemon/bench_ceiling.h"

#include "collectors/ceiling/working_set.h"
#include "tests/support/catch.h"

using namespace rooflined;
using daemon::choose_ceiling;

namespace {

ceiling::Measurement measured(BytesPerSecond best) {
  ceiling::Measurement measurement;
  measurement.winner = ceiling::MeasuredCell{"dot", 2, best, best, true, {best, best, best, best, best}};
  measurement.verdict = ceiling::Verdict::kConfirmed;
  return measurement;
}

ceiling::History history_of(BytesPerSecond rate) {
  ceiling::History history;
  for (int i = 0; i < 3; ++i) history.take(ceiling::confirmed_result(measured(rate), WallTime{}));
  return history;
}

ceiling::MemoryFacts memory_of(Bytes total) {
  ceiling::MemoryFacts memory;
  memory.total = total;
  memory.free = total;
  return memory;
}

}  // namespace

TEST_CASE("D1: constant contention is stable, and outvoted by the history: 14.1 GB/s where 50.7 were adopted") {
  const auto choice = choose_ceiling(measured(14.1e9), history_of(50.7e9));
  REQUIRE(choice.ceiling);
  CHECK(*choice.ceiling == 50.7e9);
  REQUIRE(choice.notes.size() == 1);
  CHECK(choice.notes.front().find("14.10 GB/s were measured now") != std::string::npos);
}

TEST_CASE("a measurement that agrees with the history, or has none, is the ceiling") {
  CHECK(choose_ceiling(measured(40e9), history_of(50e9)).ceiling == 40e9);
  CHECK(choose_ceiling(measured(40e9), ceiling::History{}).ceiling == 40e9);
  CHECK(choose_ceiling(measured(40e9), history_of(50e9)).notes.empty());
}

TEST_CASE("A5: a measurement that does not hold is no ceiling; an adopted one takes its place") {
  ceiling::Measurement contended = measured(40e9);
  contended.verdict = ceiling::Verdict::kContended;
  CHECK_FALSE(choose_ceiling(contended, ceiling::History{}).ceiling);
  CHECK(choose_ceiling(contended, ceiling::History{}).notes.size() == 1);
  CHECK(choose_ceiling(contended, history_of(50e9)).ceiling == 50e9);
}

TEST_CASE("D2: never fewer repetitions than tell a median from a best") {
  CHECK(ceiling::kRepetitionsMin >= 3);
}

TEST_CASE("D3 and D4: all that is allocated is within an eighth of the RAM") {
  const auto small = ceiling::plan_working_set(memory_of(2'000'000'000), 512 * kMiB, std::nullopt);
  REQUIRE(small.ok());
  CHECK(small->size <= 250'000'000);
  CHECK(small->cache_inflated);
}

TEST_CASE("D5: a size that was asked for is refused where that much is not free") {
  CHECK_FALSE(ceiling::plan_working_set(memory_of(2'000'000'000), 32 * kMiB, 4'000'000'000).ok());
}
