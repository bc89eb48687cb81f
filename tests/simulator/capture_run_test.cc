// Captures of simulated servers through the daemon's own line: the same on every machine.

#include "tests/simulator/capture_run.h"

#include "tests/support/catch.h"
#include "tests/support/replay.h"
#include "tests/support/temporary_folder.h"

#include <string>

namespace rooflined::simulator {
namespace {

CaptureRunOptions options_for(const std::string& model) {
  CaptureRunOptions options;
  options.server.model = *load_model("builtin:" + model);
  options.server.engine.geometry = options.server.model.geometry;
  options.server.engine.bandwidth = 100e9;
  options.server.engine.efficiency = 0.6;
  options.load.concurrency = 4;
  options.path = "/v1/chat/completions";
  options.duration_seconds = 20;
  return options;
}

struct Seen {
  CaptureResult truth;
  nlohmann::json report;
  const nlohmann::json& target() const { return report["targets"][0]; }
};

Seen run(const CaptureRunOptions& options) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/run.pcap";
  auto file = CaptureFile::create(path);
  REQUIRE(file.ok());
  CaptureRun simulated(options, **file);
  Seen seen{simulated.run(), {}};
  REQUIRE((*file)->finish());
  test::Replay replay(8080, std::make_shared<Geometry>(options.server.model.geometry));
  replay.feed(test::read_packets(path));
  replay.finish();
  seen.report = replay.report(options.server.engine.bandwidth);
  return seen;
}

TEST_CASE("the daemon derives from a capture what the engine did") {
  const std::string dialect = GENERATE(from_range(dialect_names()));
  CAPTURE(dialect);
  CaptureRunOptions options = options_for("moe-small");
  options.server.dialect = dialect;
  options.server.engine.prefill_tokens_per_second = 5000;
  options.server.engine.overhead_seconds = 0.0005;
  const RoutePath route = make_dialect(dialect)->routes().front();
  options.route = route.route;
  options.path = route.path;
  const Seen seen = run(options);
  const Truth& truth = seen.truth.truth;
  CHECK(seen.report["targets"].size() == 1);
  CHECK(seen.target()["requests"] == truth.sequences_finished);
  CHECK(seen.target()["output_tokens"] == truth.output_tokens);
  CHECK(seen.target()["prompt_tokens"] == truth.prompt_tokens);
  CHECK(seen.target()["decode_passes"].get<double>() ==
        Approx(static_cast<double>(truth.decode_passes)).epsilon(0.001));
  CHECK(seen.target()["decode_bytes"]["total"].get<double>() == Approx(truth.bytes()).epsilon(0.001));
  CHECK(seen.target()["busy_seconds"].get<double>() == Approx(truth.busy_seconds).epsilon(0.001));
}

TEST_CASE("a capture is the same whenever it is made") {
  const CaptureRunOptions options = options_for("moe-small");
  const Seen first = run(options);
  const Seen second = run(options);
  CHECK(first.truth.truth.busy_seconds == second.truth.truth.busy_seconds);
  CHECK(first.target()["mbu_ratio"] == second.target()["mbu_ratio"]);
}

TEST_CASE("a restart closes every connection, and the next phase is another engine's") {
  CaptureRunOptions options = options_for("moe-small");
  options.server.dialect = "llama.cpp";
  Change change;
  change.at_seconds = 10;
  change.efficiency = 0.3;
  change.version = "b9-f";
  change.restart_seconds = 2;
  change.concurrency = 2;
  options.server.changes.push_back(change);
  const Seen seen = run(options);
  CHECK(seen.truth.cut == 4);
  CHECK(seen.truth.refused == 4);
  REQUIRE(seen.truth.phases.size() == 2);
  const auto mbu = [&](std::size_t phase) {
    const Truth& truth = seen.truth.phases[phase].truth;
    return truth.bytes() / truth.busy_capacity_bytes;
  };
  CHECK(mbu(0) == Approx(0.6).epsilon(0.01));
  CHECK(mbu(1) == Approx(0.3).epsilon(0.01));
  CHECK(seen.truth.phases[1].truth.sequence_seconds / seen.truth.phases[1].truth.busy_seconds < 2.01);
  CHECK(seen.target()["requests_aborted"] == 4);
}

TEST_CASE("clients that leave free their places") {
  CaptureRunOptions options = options_for("moe-small");
  options.load.abort_share = 0.5;
  options.load.whole_share = 0.2;
  const Seen seen = run(options);
  CHECK(seen.truth.aborted > 0);
  CHECK(seen.truth.requests == seen.truth.aborted + seen.truth.truth.sequences_finished);
  CHECK(seen.target()["requests"] == seen.truth.requests);
}

TEST_CASE("arrivals at random come at their rate") {
  CaptureRunOptions options = options_for("moe-small");
  options.load.rate = 20;
  options.load.output_tokens = Lengths::fixed(5);
  const Seen seen = run(options);
  CHECK(static_cast<double>(seen.truth.requests) == Approx(400).margin(80));
  CHECK(seen.target()["requests"] == seen.truth.requests);
}

TEST_CASE("requests are spread over the replicas") {
  CaptureRunOptions options = options_for("llama-3.2-1b-q8_0");
  options.server.replicas = 2;
  const Seen seen = run(options);
  const Truth& truth = seen.truth.truth;
  CHECK(truth.sequence_seconds / truth.busy_seconds == Approx(2).epsilon(0.05));
}

TEST_CASE("a file that cannot be written is an error") {
  CHECK_FALSE(CaptureFile::create("/nonexistent/x.pcap").ok());
}

}  // namespace
}  // namespace rooflined::simulator
