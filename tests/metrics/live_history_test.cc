// Goal: the page's minutes are those that passed: bounded by time, kept for a target that is gone, not by one
// forgotten.

#include "metrics/live_history.h"

#include "tests/support/catch.h"

using namespace rooflined;

namespace {

Snapshot snapshot_at(double seconds, double rate) {
  Snapshot snapshot;
  snapshot.taken_at = WallTime::from_ns(static_cast<std::int64_t>(seconds * 1e9));
  TargetSnapshot target;
  target.target = "t";
  target.live.emplace();
  target.live->window = "10s";
  target.live->tokens_per_second = rate;
  snapshot.targets.push_back(target);
  return snapshot;
}

std::vector<double> rates(const Snapshot& snapshot) {
  std::vector<double> out;
  for (const RecentPoint& point : *snapshot.targets.at(0).recent) out.push_back(point.tokens_per_second);
  return out;
}

}  // namespace

TEST_CASE("a point a step, whatever the number of snapshots") {
  LiveHistory history;
  for (int second = 0; second < 20; ++second) {
    Snapshot snapshot = snapshot_at(1000 + second, second);
    history.note(snapshot);
    if (second == 19) CHECK(rates(snapshot) == std::vector<double>{0, 5, 10, 15});
  }
}

TEST_CASE("points are kept for ten minutes") {
  LiveHistory history;
  Snapshot snapshot;
  for (int step = 0; step < 400; ++step) {
    snapshot = snapshot_at(1000 + step * LiveHistory::kStepSeconds, step);
    history.note(snapshot);
  }
  const std::vector<RecentPoint>& points = *snapshot.targets[0].recent;
  CHECK(points.size() == 121);
  CHECK(points.back().at - points.front().at == LiveHistory::kSpanSeconds);
  CHECK(points.back().tokens_per_second == 399);
}

TEST_CASE("latency and MBU are noted where they are known") {
  LiveHistory history;
  Snapshot snapshot = snapshot_at(1000, 40);
  snapshot.targets[0].live->mbu_ratio = 0.5;
  snapshot.targets[0].live->itl_seconds = LatencyQuantiles{0.025, 0.02, 0.03, 0.04};
  history.note(snapshot);
  CHECK(snapshot.targets[0].recent->at(0).mbu_ratio == 0.5);
  CHECK(snapshot.targets[0].recent->at(0).itl_seconds == 0.025);
  snapshot = snapshot_at(1005, 0);
  history.note(snapshot);
  CHECK_FALSE(snapshot.targets[0].recent->at(1).mbu_ratio);
  CHECK_FALSE(snapshot.targets[0].recent->at(1).itl_seconds);
}

TEST_CASE("a target that is gone keeps its points, one that is forgotten leaves none to its successor") {
  LiveHistory history;
  Snapshot snapshot = snapshot_at(1000, 7);
  history.note(snapshot);
  snapshot = snapshot_at(1005, 0);
  snapshot.targets[0].live.reset();
  history.note(snapshot);
  CHECK(rates(snapshot) == std::vector<double>{7});
  snapshot.targets.clear();
  history.note(snapshot);
  snapshot = snapshot_at(1015, 9);
  history.note(snapshot);
  CHECK(rates(snapshot) == std::vector<double>{9});
}

TEST_CASE("a clock that was set back starts the points anew") {
  LiveHistory history;
  Snapshot snapshot = snapshot_at(5000, 1);
  history.note(snapshot);
  snapshot = snapshot_at(1000, 2);
  history.note(snapshot);
  CHECK(rates(snapshot) == std::vector<double>{2});
  snapshot = snapshot_at(1005, 3);
  history.note(snapshot);
  CHECK(rates(snapshot) == std::vector<double>{2, 3});
}
