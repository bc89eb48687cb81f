#include "daemon/twin_evidence.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using namespace rooflined::daemon;
using rooflined::test::at_ms;

namespace {

struct Piece {
  std::uint32_t characters;
  double ms;
};

TextTrail trail(std::initializer_list<Piece> pieces, bool ended = false) {
  TextTrail trail;
  for (const Piece& piece : pieces) trail.add(piece.characters, at_ms(piece.ms));
  trail.ended = ended;
  return trail;
}

TwinEvidence compare(const TextTrail& outer, const TextTrail& inner, double now_ms) {
  return compare_trails(outer, inner, at_ms(now_ms), std::chrono::milliseconds(50), std::chrono::milliseconds(50));
}

}  // namespace

TEST_CASE("sums of characters compare where segments do not") {
  const TextTrail inner = trail({{3, 10}, {4, 20}, {2, 30}, {5, 40}});
  const TwinEvidence merged = compare(trail({{7, 21}, {7, 41}}), inner, 42);
  CHECK(merged.common == 2);
  CHECK(merged.judged == 2);
  CHECK(merged.agrees());
  CHECK(compare(inner, trail({{7, 10}, {7, 20}}), 42).agrees());
}

TEST_CASE("an outer hop is never ahead of the engine, nor far behind") {
  const TextTrail inner = trail({{3, 10}, {4, 20}, {2, 30}, {5, 40}});
  CHECK(compare(trail({{3, 8}, {4, 18}, {2, 28}, {5, 38}}), inner, 100).common == 0);
  CHECK(compare(trail({{3, 8}, {4, 18}, {2, 28}, {5, 38}}), inner, 100).refuted);
  CHECK(compare(trail({{3, 61}, {4, 71}, {2, 81}, {5, 91}}), inner, 100).refuted);
  CHECK_FALSE(compare(trail({{3, 9.5}}), inner, 41).refuted);  // two processors' clocks
}

TEST_CASE("text that only one of them has is held against it after a while") {
  const TextTrail inner = trail({{3, 10}});
  const TextTrail outer = trail({{3, 11}, {4, 21}});
  CHECK_FALSE(compare(outer, inner, 60).refuted);
  CHECK(compare(outer, inner, 80).refuted);
  CHECK_FALSE(compare(inner, trail({{3, 9}, {4, 15}}), 60).refuted);
  CHECK(compare(inner, trail({{3, 9}, {4, 15}}), 120).refuted);
}

TEST_CASE("at their ends both have the same amount of text") {
  const TextTrail inner = trail({{3, 10}, {4, 20}}, true);
  CHECK(compare(trail({{7, 21}}, true), inner, 30).complete);
  CHECK(compare(trail({{3, 11}}, true), inner, 30).refuted);
}
