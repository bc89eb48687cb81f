#include "daemon/governor.h"

#include "daemon/flow_share.h"
#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using namespace rooflined::daemon;
using rooflined::test::at_ms;

namespace {

// A thread that costs `full` of a core when everything is watched.
struct Bench {
  explicit Bench(double limit) : governor(limit) {}

  void run(double full, int seconds) {
    for (int second = 0; second < seconds; ++second) {
      now = now + std::chrono::seconds(1);
      used += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(full / governor.one_in()));
      if (governor.observe(now, used)) ++changes;
    }
  }

  Governor governor;
  MonotonicTime now;
  Duration used{0};
  int changes = 0;
};

}  // namespace

TEST_CASE("below the limit everything is watched") {
  Bench bench(0.05);
  bench.run(0.049, 3600);
  CHECK(bench.governor.one_in() == 1);
  CHECK(bench.changes == 0);
}

TEST_CASE("above it, as many flows as the limit allows, within two looks") {
  Bench bench(0.05);
  bench.run(0.3, 11);
  CHECK(bench.governor.one_in() == 8);
  bench.run(0.3, 3600);
  CHECK(bench.governor.one_in() == 8);
  CHECK(bench.changes == 1);
}

TEST_CASE("it does not swing, and comes back when it is quiet") {
  for (const double full : {0.06, 0.09, 0.11, 0.19}) {
    INFO(full);
    Bench bench(0.05);
    bench.run(full, 3600);
    CHECK(bench.changes <= 2);
    bench.run(0.01, 300);
    CHECK(bench.governor.one_in() == 1);
  }
}

TEST_CASE("it never leaves out everything") {
  Bench bench(0.001);
  bench.run(1, 3600);
  CHECK(bench.governor.one_in() == Governor::kOneInMax);
}

TEST_CASE("the share of a window is the mean over its time") {
  FlowShare share;
  CHECK(share.over(std::chrono::seconds(60), at_ms(100'000)) == Approx(1));
  share.set(4, at_ms(100'000));
  CHECK(share.over(std::chrono::seconds(60), at_ms(130'000)) == Approx(0.5 + 0.125));
  CHECK(share.over(std::chrono::seconds(10), at_ms(130'000)) == Approx(0.25));
  share.set(2, at_ms(130'000));
  CHECK(share.over(std::chrono::seconds(60), at_ms(160'000)) == Approx(0.125 + 0.25));
  share.set(1, at_ms(160'000));
  CHECK(share.over(std::chrono::seconds(60), at_ms(220'000)) == Approx(1));
}
