#include "collectors/server/deploy_history.h"

#include "tests/support/catch.h"

#include <cmath>

using namespace rooflined;
using namespace rooflined::server;

namespace {

constexpr auto kSlice = DeploySlices::kSpan;

LineTime at_s(double seconds) {
  return LineTime(from_seconds(seconds));
}

DeployIdentity build(const std::string& version, const std::string& settings = {}) {
  DeployIdentity identity;
  identity.version = version;
  identity.settings = settings;
  return identity;
}

// A history, and an engine that decodes all the time at `rate`.
struct Bench {
  DeployHistory history{1, at_s(0)};
  TimeSpans decoding;
  double now_s = 0;

  explicit Bench(const DeployIdentity& identity = build("v1")) { history.identify(identity, at_s(0)); }

  void decode(int slices, double rate) {
    for (int i = 0; i < slices; ++i) {
      decoding.add(at_s(now_s), at_s(now_s + 10));
      now_s += 10;
      DeploySlice slice;
      slice.index = at_s(now_s).ns() / kSlice.count() - 1;
      slice.log_rate = static_cast<float>(std::log(rate) + (i % 2 == 0 ? 0.01 : -0.01));
      slice.log_itl = -slice.log_rate;
      slice.bytes_known = true;
      history.add({&slice, 1}, decoding);
      history.advance_to(at_s(now_s));
    }
  }
  void restart(const DeployIdentity& identity = build("v1")) {
    history.begin(DeployCause::kRestart, at_s(now_s));
    history.identify(identity, at_s(now_s));
    history.advance_to(at_s(now_s));
  }
};

std::uint64_t counted(DeployHistory& history, DeployCause cause) {
  return history.take_counts()[static_cast<std::size_t>(cause)];
}

}  // namespace

TEST_CASE("a restart is a generation, compared once there is enough of both") {
  Bench bench;
  bench.decode(63, 10e9);  // the first three are of the settling
  CHECK(bench.history.change() == nullptr);
  bench.restart();
  CHECK(bench.history.current().generation == 2);
  CHECK(bench.history.current().cause == DeployCause::kRestart);
  CHECK(counted(bench.history, DeployCause::kRestart) == 1);
  bench.decode(14, 8e9);
  CHECK_FALSE(bench.history.current().change.rate);
  bench.decode(1, 8e9);
  REQUIRE(bench.history.change() != nullptr);
  const Comparison& change = *bench.history.change();
  CHECK(change.against == 1);
  REQUIRE(change.rate);
  CHECK(change.rate->ratio == Approx(0.8).epsilon(0.01));
  CHECK(change.rate->slices == 12);
  REQUIRE(change.itl);
  CHECK(change.itl->ratio == Approx(1.25).epsilon(0.01));
}

TEST_CASE("the cause is what the server tells after its restart") {
  struct Row {
    DeployIdentity told;
    DeployCause cause;
  };
  DeployIdentity other_file = build("v1", "slots=4");
  other_file.model = "900-abc";
  DeployIdentity rewritten = build("v1", "slots=4");
  rewritten.model = "800-abc";
  rewritten.model_written = 20;
  const Row rows[] = {{build("v1", "slots=4"), DeployCause::kRestart},
                      {build("v2", "slots=8"), DeployCause::kVersion},
                      {other_file, DeployCause::kModel},
                      {rewritten, DeployCause::kModel},
                      {build("v1", "slots=8"), DeployCause::kSettings},
                      {build(""), DeployCause::kRestart}};  // it tells nothing any more
  DeployIdentity first = build("v1", "slots=4");
  first.model = "800-abc";
  first.model_written = 10;
  for (const Row& row : rows) {
    Bench bench(first);
    bench.restart(row.told);
    INFO(deploy_cause_name(row.cause));
    CHECK(bench.history.current().cause == row.cause);
    CHECK(counted(bench.history, row.cause) == 1);
  }
}

TEST_CASE("a server that needs minutes to load is one deploy, with the cause that it tells then") {
  Bench bench;
  bench.history.begin(DeployCause::kRestart, at_s(100));
  bench.history.advance_to(at_s(130));
  CHECK(counted(bench.history, DeployCause::kRestart) == 0);
  bench.history.identify(build("v2"), at_s(200));
  bench.history.advance_to(at_s(201));
  CHECK(bench.history.current().generation == 2);
  CHECK(bench.history.current().began == at_s(100));
  CHECK(counted(bench.history, DeployCause::kVersion) == 1);
  // One that tells nothing counts as what was seen.
  bench.history.begin(DeployCause::kRestart, at_s(300));
  bench.history.advance_to(at_s(601));
  CHECK(counted(bench.history, DeployCause::kRestart) == 1);
}

TEST_CASE("another identity without a restart is a deploy once it lasts") {
  Bench bench;
  bench.history.identify(build("v2"), at_s(10));
  bench.history.advance_to(at_s(12));
  CHECK(bench.history.current().generation == 1);
  SECTION("it stays") {
    bench.history.advance_to(at_s(15));
    CHECK(bench.history.current().generation == 2);
    CHECK(bench.history.current().cause == DeployCause::kVersion);
    CHECK(bench.history.current().began == at_s(10));
    CHECK(bench.history.current().identity.version == "v2");
  }
  SECTION("two builds answer in turn") {
    for (int i = 0; i < 100; ++i) {
      bench.history.identify(build(i % 2 == 0 ? "v1" : "v2"), at_s(13 + i));
      bench.history.advance_to(at_s(13 + i));
    }
    CHECK(bench.history.current().generation == 1);
  }
  SECTION("the restart is noticed after it") {
    bench.history.begin(DeployCause::kRestart, at_s(12));
    bench.history.advance_to(at_s(20));
    CHECK(bench.history.current().generation == 2);
    CHECK(bench.history.current().cause == DeployCause::kVersion);
    CHECK(counted(bench.history, DeployCause::kVersion) == 1);
  }
}

TEST_CASE("what is told for the first time is no change") {
  Bench bench{DeployIdentity()};
  bench.history.identify(build("v1", "slots=4"), at_s(50));
  bench.history.advance_to(at_s(100));
  CHECK(bench.history.current().generation == 1);
  CHECK(bench.history.current().identity.version == "v1");
}

TEST_CASE("a generation too short to be compared with gives way to the one before it") {
  Bench bench;
  bench.decode(100, 10e9);
  bench.restart(build("v2"));
  bench.decode(20, 5e9);
  bench.restart(build("v3"));
  bench.decode(20, 10e9);
  REQUIRE(bench.history.change() != nullptr);
  CHECK(bench.history.change()->against == 1);
  CHECK(bench.history.change()->rate->ratio == Approx(1).epsilon(0.01));
}

TEST_CASE("a server that is started again and again has a baseline after a while") {
  Bench bench;
  for (int start = 0; start < 4; ++start) {
    bench.decode(23, 10e9);
    bench.restart();
  }
  bench.decode(15, 8e9);
  REQUIRE(bench.history.change() != nullptr);
  CHECK(bench.history.change()->rate->ratio == Approx(0.8).epsilon(0.01));
}

TEST_CASE("a rollback is compared with what it rolls back to, too") {
  Bench bench;
  bench.decode(100, 10e9);
  bench.restart(build("v2"));
  bench.decode(100, 8e9);
  CHECK(bench.history.current().rollback.against == 0);
  bench.restart(build("v1"));
  bench.decode(100, 10e9);
  const Deploy& current = bench.history.current();
  CHECK(current.change.against == 2);
  CHECK(current.change.rate->ratio == Approx(1.25).epsilon(0.01));
  CHECK(current.rollback.against == 1);
  CHECK(current.rollback.rate->ratio == Approx(1).epsilon(0.01));
}

TEST_CASE("a comparison ends with the next deploy, when it is accepted, or after a day") {
  Bench bench;
  CHECK_FALSE(bench.history.accept());
  bench.decode(100, 10e9);
  bench.restart();
  bench.decode(20, 8e9);
  REQUIRE(bench.history.change() != nullptr);
  SECTION("accepted") {
    CHECK(bench.history.accept());
    CHECK(bench.history.change() == nullptr);
    CHECK_FALSE(bench.history.accept());
    bench.decode(20, 8e9);
    CHECK(bench.history.change() == nullptr);
  }
  SECTION("a day, through idle") {
    bench.history.advance_to(at_s(1000 + 86'399));
    CHECK(bench.history.change() != nullptr);
    bench.history.advance_to(at_s(1000 + 86'401));
    CHECK(bench.history.change() == nullptr);
  }
  SECTION("the next deploy") {
    bench.restart();
    CHECK(bench.history.change() == nullptr);
    CHECK(bench.history.state().past.back().change.rate);  // what it was stays on record
  }
  SECTION("the machine's doing") {
    bench.history.blame_machine();
    CHECK(bench.history.change() == nullptr);
    CHECK(bench.history.current().cause == DeployCause::kMachine);
    CHECK(counted(bench.history, DeployCause::kMachine) == 1);
  }
}

TEST_CASE("a mark is a deploy, or names the one that just was") {
  Bench bench;
  bench.decode(100, 10e9);
  bench.history.mark("canary", at_s(bench.now_s));
  CHECK(bench.history.current().generation == 2);
  CHECK(bench.history.current().cause == DeployCause::kMarked);
  CHECK(bench.history.current().marked_version == "canary");
  bench.decode(20, 10e9);
  bench.restart();
  CHECK(bench.history.current().generation == 3);
  bench.history.mark("v7", at_s(bench.now_s + 5));
  CHECK(bench.history.current().generation == 3);
  CHECK(bench.history.current().marked_version == "v7");
  bench.decode(20, 8e9);
  CHECK(bench.history.change()->against == 1);
}

TEST_CASE("slices that end with the old generation are its own, those in between nobody's") {
  Bench bench;
  bench.decode(62, 10e9);  // 59 slices count
  bench.history.begin(DeployCause::kRestart, at_s(630));
  DeploySlice late;
  late.index = 62;  // it was over at 630 s, and was closed after that
  late.bytes_known = true;
  DeploySlice between = late;
  between.index = 63;
  bench.decoding.add(at_s(635), at_s(640));
  const DeploySlice slices[] = {late, between};
  bench.history.add(slices, bench.decoding);
  CHECK(bench.history.state().baselines.back().slices.size() == 60);
  CHECK(bench.history.state().slices.empty());
  CHECK(bench.history.state().first_token == at_s(635));
}

TEST_CASE("what is kept is bounded") {
  Bench bench;
  bench.decode(2100, 10e9);
  CHECK(bench.history.state().slices.size() == kDeploySlicesMax);
  for (int i = 0; i < 20; ++i) {
    bench.restart(build("v" + std::to_string(i + 2)));
    bench.decode(70, 10e9);
  }
  CHECK(bench.history.state().past.size() == DeployState::kPastMax);
  CHECK(bench.history.state().baselines.size() == DeployState::kBaselinesMax);
  CHECK(bench.history.current().generation == 21);
}

TEST_CASE("a clock that went back while the daemon was away holds up nothing") {
  Bench first;
  first.decode(100, 10e9);
  Bench second;
  second.history = DeployHistory(first.history.state());
  second.history.advance_to(at_s(0));
  second.decode(10, 10e9);
  CHECK(second.history.state().slices.size() == 97 + 7);
}

TEST_CASE("fingerprints are equal for equal things and tell every part apart") {
  const DeployIdentity one = build("v1", "slots=4");
  DeployIdentity copied = one;
  copied.model_written = 77;  // the file was copied to another node
  CHECK(fingerprint("vllm", "m", one) == fingerprint("vllm", "m", copied));
  CHECK(fingerprint("vllm", "m", one).size() == 12);
  DeployIdentity file = one;
  file.model = "900-abc";
  for (const std::string& other : {fingerprint("sglang", "m", one), fingerprint("vllm", "n", one),
                                   fingerprint("vllm", "m", build("v2", "slots=4")), fingerprint("vllm", "m", file),
                                   fingerprint("vllm", "m", build("v1", "slots=8")), fingerprint("vll", "mm", one)}) {
    CHECK(fingerprint("vllm", "m", one) != other);
  }
  CHECK(fingerprint("vllm", "m", one) == "bd73d0db45ca");
}

TEST_CASE("an identity is made of what makes another deploy") {
  ServerIdentity told;
  told.version = "0.5.1";
  told.slots = 4;
  told.context_per_slot = 8192;
  told.speculative = false;
  told.kv_cache_type = "q8_0";
  REQUIRE(add_arguments_answer(R"({"tp_size":2,"quantization":"fp8","api_key":"secret","port":3000})", told));
  told.models = {ServedModel{.id = "m", .aliases = {}, .base = {}, .root = {}, .parameters = 7, .tensor_bytes = 800}};
  const DeployIdentity identity = deploy_identity(told, "", "");
  CHECK(identity.version == "0.5.1");
  CHECK(identity.settings == "slots=4 context=8192 speculative=0 kv_cache_type=q8_0 quantization=fp8 tp_size=2");
  CHECK(identity.model == "800-7");
  CHECK(identity.model_written == 0);
}
