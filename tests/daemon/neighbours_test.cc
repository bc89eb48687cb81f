#include "daemon/neighbours.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using namespace rooflined::daemon;
using rooflined::test::at_ms;

namespace {

Endpoint endpoint(std::uint16_t port) {
  Endpoint endpoint;
  endpoint.port = port;
  return endpoint;
}

unsigned visits_until_let_go(Neighbours& neighbours, std::uint16_t port, double ms) {
  for (unsigned visits = 1; visits <= 100; ++visits) {
    if (neighbours.note_foreign(endpoint(port), false, at_ms(ms))) return visits;
  }
  return 0;
}

}  // namespace

TEST_CASE("a web site is let go after a few exchanges and looked at again ever later") {
  Neighbours neighbours;
  double ms = 0;
  for (const double minutes : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0}) {
    INFO(minutes);
    CHECK(visits_until_let_go(neighbours, 8080, ms) == Neighbours::kForeignMax);
    CHECK(neighbours.left_out() == std::vector<Endpoint>{endpoint(8080)});
    CHECK_FALSE(neighbours.note_foreign(endpoint(8080), false, at_ms(ms)));  // still in the ring
    CHECK_FALSE(neighbours.advance_to(at_ms(ms + minutes * 60e3 - 1)));
    ms += minutes * 60e3;
    CHECK(neighbours.advance_to(at_ms(ms)));
    CHECK(neighbours.left_out().empty());
  }
}

TEST_CASE("a server where an engine was recognised is never let go") {
  Neighbours neighbours;
  for (int visit = 0; visit < 1000; ++visit) CHECK_FALSE(neighbours.note_foreign(endpoint(8080), true, at_ms(visit)));
  // Nor does it carry over what it was before.
  for (unsigned visit = 1; visit < Neighbours::kForeignMax; ++visit) {
    CHECK_FALSE(neighbours.note_foreign(endpoint(8080), false, at_ms(2000)));
  }
}

TEST_CASE("the list of servers is bounded") {
  Neighbours neighbours;
  for (std::uint16_t port = 1; port <= 2000; ++port) visits_until_let_go(neighbours, port, port);
  CHECK(neighbours.left_out().size() == Neighbours::kLeftOutMax);
  CHECK(neighbours.advance_to(at_ms(3600e3)));
  CHECK(neighbours.left_out().empty());
  CHECK(visits_until_let_go(neighbours, 3000, 3600e3) == Neighbours::kForeignMax);
}
