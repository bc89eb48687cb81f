// The keeper without a probe: what it says of the ceiling, of targets, and of a file that others write.

#include "daemon/ceiling_keeper.h"

#include "daemon/clock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using namespace rooflined;
using namespace rooflined::daemon;
using ceiling::ConfirmedResult;

namespace {

CeilingState state_of(std::vector<double> gigabytes_per_second, WallTime at = wall_now()) {
  CeilingState state;
  state.identity = ceiling::read_identity("/");
  for (const double rate : gigabytes_per_second) {
    state.history.restore(ConfirmedResult{at, rate * 1e9, rate * 0.9e9, "linear", 2, kGiB, false, {}});
  }
  return state;
}

void save(const std::string& directory, const CeilingState& state) {
  REQUIRE(update_ceiling_state(directory, state, [&](CeilingState& held) { held = state; }).saved.ok());
}

CeilingKeeper::Options options_in(const std::string& directory) {
  CeilingKeeper::Options options;
  options.state_directory = directory;
  options.measure = CeilingKeeper::Measure::kAlways;
  return options;
}

TargetSnapshot target_reading(double bytes_per_pass) {
  TargetSnapshot target;
  target.decode_passes = 1000;
  target.decode_bytes_dense = 1000 * bytes_per_pass;
  target.ceiling_exceeded = true;
  return target;
}

bool wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 600 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return condition();
}

}  // namespace

TEST_CASE("a result that another program adopts is taken over without a signal") {
  const TemporaryFolder folder;
  const Activity activity;
  CeilingKeeper keeper(options_in(folder.path()), activity);
  CHECK_FALSE(keeper.bandwidth());
  keeper.start();
  save(folder.path(), state_of({30}));
  CHECK(wait_until([&] { return keeper.bandwidth() == 30e9; }));
  save(folder.path(), state_of({30, 31, 32}));
  CHECK(wait_until([&] { return keeper.bandwidth() == 31e9; }));
  // A broken file, or none, is no news.
  folder.write("ceiling.json", "{");
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  CHECK(keeper.bandwidth() == 31e9);
  keeper.stop();
}

TEST_CASE("without an idle window nothing is measured, and the reasons are said") {
  const TemporaryFolder folder;
  Activity activity;  // its capture is down
  CeilingKeeper keeper(options_in(folder.path()), activity);
  keeper.start();
  Snapshot snapshot;
  CHECK(wait_until([&] {
    snapshot = Snapshot();
    keeper.describe(wall_now(), snapshot);
    return snapshot.idle_blocked.contains("cpu");
  }));
  CHECK(snapshot.idle == false);
  CHECK(snapshot.idle_blocked.at("capture"));
  for (const char* reason : {"capture", "contended", "cpu", "load", "memory", "requests"}) {
    CHECK(snapshot.idle_blocked.contains(reason));
  }
  CHECK_FALSE(snapshot.ceiling);
  CHECK(snapshot.ceiling_measurements == std::array<std::uint64_t, 4>{});
}

TEST_CASE("a doorbell that cannot be opened is a capture that is down, and no probe runs") {
  const TemporaryFolder folder;
  // A machine that shows nothing but free memory is idle as soon as the wire is.
  const TemporaryFolder root;
  std::filesystem::create_directories(root.path() + "/proc");
  root.write("proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 7000000 kB\n");
  Activity activity;
  activity.capture_up = true;
  CeilingKeeper::Options options = options_in(folder.path());
  options.idle_for = Duration(0);
  options.probe.root = root.path();
  options.doorbell = {"no-such-card", {8080}};
  CeilingKeeper keeper(options, activity);
  keeper.start();
  Snapshot snapshot;
  CHECK(wait_until([&] {
    snapshot = Snapshot();
    keeper.describe(wall_now(), snapshot);
    return !snapshot.idle_blocked.empty() && snapshot.idle_blocked.at("capture");
  }));
  CHECK(snapshot.idle == false);
  REQUIRE(snapshot.collectors.size() == 1);
  CHECK_FALSE(snapshot.collectors[0].up);
  CHECK(snapshot.ceiling_measurements == std::array<std::uint64_t, 4>{0, 0, 0, 1});
}

TEST_CASE("what was observed of a node without an idle window outlives a restart") {
  const TemporaryFolder folder;
  CeilingState state = state_of({});
  state.observed = {ceiling::ObservedRate::kAfter, 20e9};
  save(folder.path(), state);
  const Activity activity;  // its capture is down: never idle
  for (const double seen : {25e9, 15e9}) {
    CeilingKeeper keeper(options_in(folder.path()), activity);
    CHECK(keeper.bandwidth() == (seen > 20e9 ? 20e9 : 25e9));
    keeper.start();
    keeper.see_decode_rate(seen);
    keeper.stop();
    Snapshot snapshot;
    keeper.describe(wall_now(), snapshot);
    REQUIRE(snapshot.ceiling);
    CHECK(snapshot.ceiling->source == "observed");
    CHECK(snapshot.ceiling->bytes_per_second == 25e9);
  }
  // Once something was measured, that counts.
  CeilingState measured = load_ceiling_state(folder.path(), ceiling::read_identity("/"));
  measured.history.restore(ConfirmedResult{wall_now(), 40e9, 38e9, "linear", 2, kGiB, false, {}});
  save(folder.path(), measured);
  CHECK(CeilingKeeper(options_in(folder.path()), activity).bandwidth() == 40e9);
}

TEST_CASE("what a snapshot says of a measured ceiling") {
  const TemporaryFolder folder;
  CeilingState state = state_of({30, 31, 32}, wall_now() - std::chrono::hours(24 * 8));
  ceiling::Measurement unstable;
  unstable.verdict = ceiling::Verdict::kContended;
  unstable.cells = {{"linear", 1, 20e9, 10e9, false, {20e9, 10e9}}};
  state.take(unstable, wall_now());
  save(folder.path(), state);
  const Activity activity;
  CeilingKeeper keeper(options_in(folder.path()), activity);
  Snapshot snapshot;
  keeper.describe(wall_now(), snapshot);
  REQUIRE(snapshot.ceiling);
  CHECK(snapshot.ceiling->source == "measured");
  CHECK(snapshot.ceiling->bytes_per_second == 31e9);
  CHECK(snapshot.ceiling->stale);
  CHECK_FALSE(snapshot.ceiling->stable);  // the last one was not
  CHECK_FALSE(snapshot.ceiling->suspect);
  CHECK(snapshot.ceiling->results.size() == 3);
  REQUIRE(snapshot.ceiling_last);
  CHECK(snapshot.ceiling_last->verdict == "contended");
  CHECK(snapshot.ceiling_last->cells.at(0).samples == std::vector<double>{20e9, 10e9});

  std::vector<TargetSnapshot> targets = {target_reading(1e12)};
  targets[0].memory = "ram";
  targets.push_back(targets[0]);
  targets[1].memory = "gpu";
  keeper.judge(wall_now(), targets);
  CHECK(targets[0].caveats == std::vector<std::string>{"ceiling_stale"});
  CHECK(targets[0].ceiling_exceeded);
  CHECK(targets[1].caveats.empty());
}

TEST_CASE("a model that the caches help to serve is marked, and does not exceed the ceiling") {
  CeilingState state = state_of({30, 31, 32});
  const Bytes llc = state.identity.llc_bytes;
  if (llc < 2 * kMiB) return;  // this machine does not tell its caches
  const double bytes = static_cast<double>(llc);
  const auto size = ceiling::cache_probe_size(bytes, llc);
  REQUIRE(size);
  for (const double rate : {35e9, 40e9}) {
    const TemporaryFolder folder;
    state.cache_probes.add({wall_now(), *size, rate});
    save(folder.path(), state);
    const Activity activity;
    CeilingKeeper keeper(options_in(folder.path()), activity);
    std::vector<TargetSnapshot> targets = {target_reading(bytes), target_reading(8 * bytes)};
    keeper.judge(wall_now(), targets);
    const bool assisted = rate > 1.15 * 31e9;
    CHECK(targets[0].caveats == (assisted ? std::vector<std::string>{"cache_assisted"} : std::vector<std::string>{}));
    CHECK(targets[0].ceiling_exceeded == !assisted);
    CHECK(targets[1].caveats.empty());
    CHECK(targets[1].ceiling_exceeded);
  }
}

TEST_CASE("a configured bandwidth replaces what was measured") {
  const TemporaryFolder folder;
  save(folder.path(), state_of({30, 31, 32}));
  const Activity activity;
  CeilingKeeper::Options options = options_in(folder.path());
  options.configured = 50e9;
  CeilingKeeper keeper(options, activity);
  CHECK(keeper.bandwidth() == 50e9);
  Snapshot snapshot;
  keeper.describe(wall_now(), snapshot);
  CHECK(snapshot.ceiling->source == "configured");
  CHECK_FALSE(snapshot.idle);
  keeper.reload(options_in(folder.path()));
  CHECK(keeper.bandwidth() == 31e9);
}
