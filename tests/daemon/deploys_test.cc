#include "daemon/deploys.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

#include <memory>

using namespace rooflined;
using namespace rooflined::daemon;
using rooflined::test::at_ms;

namespace {

Endpoint endpoint(std::uint16_t port, std::uint8_t last_byte = 1) {
  Endpoint endpoint;
  endpoint.address[15] = last_byte;
  endpoint.port = port;
  return endpoint;
}

TargetFacts facts_of(const std::string& version, const std::string& model = "m") {
  TargetFacts facts;
  facts.model = model;
  facts.version = version;
  facts.identity = server::DeployIdentity();
  facts.identity->version = version;
  auto geometry = std::make_shared<Geometry>();
  geometry->dense_bytes = 1e9;
  facts.geometry = std::move(geometry);
  return facts;
}

// Targets and their deploys; each engine that is told to decode bears ten tokens a second in one stream.
struct Bench {
  Targets targets{targets_options(), {}};
  std::unique_ptr<Deploys> deploys;
  double now_ms = 1e9;
  ExchangeId next = 1;

  explicit Bench(std::vector<KeptDeploys> kept = {}, const std::string& boot_id = "boot")
      : deploys(std::make_unique<Deploys>(targets, Deploys::Options{boot_id, std::move(kept)})) {}

  static Targets::Options targets_options() {
    Targets::Options options;
    options.windows = {{"1m", std::chrono::minutes(1)}};
    return options;
  }

  void advance() {
    targets.advance_to(at_ms(now_ms));
    deploys->advance_to(at_ms(now_ms));
  }
  void wait(double seconds) {
    for (const double until = now_ms + seconds * 1e3; now_ms < until; now_ms += 100) advance();
  }
  // One stream on each of the servers, side by side.
  void decode(double seconds, std::vector<Endpoint> servers, double token_ms = 100) {
    const ExchangeId first = next;
    for (const Endpoint& server : servers) {
      ExchangeBegin begin;
      begin.exchange = next;
      begin.server = server;
      begin.at = at_ms(now_ms);
      begin.streamed = true;
      begin.prompt_tokens = 500;
      targets.on_begin(begin);
      targets.on_recognised(next++, ServerFamily::kLlamaCpp, "");
    }
    const double until = now_ms + seconds * 1e3;
    for (; now_ms < until; now_ms += token_ms) {
      for (ExchangeId id = first; id < next; ++id) {
        targets.on_tokens(TokenEvent{id, 0, at_ms(now_ms), 1, 1, TokenSource::kExactLive});
      }
      advance();
    }
    for (ExchangeId id = first; id < next; ++id) {
      ExchangeEnd end;
      end.exchange = id;
      end.at = at_ms(now_ms);
      targets.on_end(end);
    }
    wait(5);
  }
  void find(const Endpoint& server, const TargetFacts& facts, std::uint64_t socket = 0) {
    decode(1, {server});
    targets.learn(server, facts);
    if (socket != 0) targets.set_socket(server, socket);
    wait(2);
  }
  DeploySnapshot current(const Endpoint& server) { return deploys->deploys_of(server).back(); }
  std::array<std::uint64_t, 6> seen(const std::string& name) {
    auto snapshots = targets.snapshots(100e9);
    deploys->describe(snapshots);
    for (const TargetSnapshot& target : snapshots) {
      if (target.target == name) return target.deploys_seen;
    }
    return {};
  }
};

}  // namespace

TEST_CASE("a restart of a server is a deploy, and what it did shows") {
  Bench bench;
  const Endpoint server = endpoint(8080);
  bench.find(server, facts_of("b1"));
  CHECK(bench.current(server).generation == 1);
  CHECK_FALSE(bench.current(server).at);
  CHECK(bench.current(server).version == "b1");
  bench.decode(800, {server});
  bench.targets.set_restarted(server);
  bench.targets.learn(server, facts_of("b2"));
  bench.wait(2);
  CHECK(bench.current(server).generation == 2);
  CHECK(bench.current(server).cause == "version");
  CHECK(bench.current(server).version == "b2");
  REQUIRE(bench.current(server).at);
  CHECK(bench.seen("llama.cpp-8080") == std::array<std::uint64_t, 6>{0, 1, 0, 0, 0, 0});
  bench.decode(200, {server}, 125);
  const DeploySnapshot deploy = bench.current(server);
  REQUIRE(deploy.mbu);
  CHECK(deploy.mbu->ratio == Approx(0.8).epsilon(0.01));
  CHECK(deploy.mbu->against == 1);
  REQUIRE(deploy.itl);
  CHECK(deploy.itl->ratio == Approx(1.25).epsilon(0.01));
  CHECK(bench.deploys->deploys_of(server).size() == 2);
}

TEST_CASE("a new container is a deploy of the same target, and goes on with its counts") {
  Bench bench;
  bench.find(endpoint(8000, 1), facts_of("b1"));
  bench.decode(800, {endpoint(8000, 1)});
  bench.targets.set_up(endpoint(8000, 1), false, at_ms(bench.now_ms));
  bench.wait(5);
  bench.find(endpoint(8000, 2), facts_of("b1"));
  const DeploySnapshot deploy = bench.current(endpoint(8000, 2));
  CHECK(deploy.generation == 2);
  CHECK(deploy.cause == "restart");
  CHECK(bench.seen("llama.cpp-8000") == std::array<std::uint64_t, 6>{1, 0, 0, 0, 0, 0});
  bench.decode(200, {endpoint(8000, 2)}, 125);
  REQUIRE(bench.current(endpoint(8000, 2)).mbu);
  CHECK(bench.current(endpoint(8000, 2)).mbu->ratio == Approx(0.8).epsilon(0.01));
}

TEST_CASE("a rolling update in which both servers answer for a while is one deploy of one target") {
  Bench bench;
  const Endpoint old_one = endpoint(8000, 1);
  const Endpoint new_one = endpoint(8000, 2);
  bench.find(old_one, facts_of("b1"));
  bench.decode(800, {old_one});
  bench.decode(1, {new_one});
  bench.targets.learn(new_one, facts_of("b2"));
  const std::size_t before = bench.deploys->kept().front().state.slices.size();
  bench.decode(25, {old_one, new_one}, 300);  // they share the memory
  CHECK(bench.current(old_one).generation == 1);
  bench.targets.set_up(old_one, false, at_ms(bench.now_ms));
  bench.decode(200, {new_one}, 125);
  CHECK(bench.targets.snapshots(std::nullopt).size() == 1);
  const auto kept = bench.deploys->kept();
  REQUIRE(kept.size() == 1);
  CHECK(kept.front().state.baselines.back().slices.size() <= before + 1);  // none of the time that they shared
  const DeploySnapshot deploy = bench.current(new_one);
  CHECK(deploy.generation == 2);
  CHECK(deploy.cause == "version");
  CHECK(bench.seen("llama.cpp-8000") == std::array<std::uint64_t, 6>{0, 1, 0, 0, 0, 0});
  REQUIRE(deploy.mbu);
  CHECK(deploy.mbu->ratio == Approx(0.8).epsilon(0.01));
}

TEST_CASE("two servers of one kind side by side have a history each") {
  Bench bench;
  bench.find(endpoint(8000, 1), facts_of("b1"));
  bench.find(endpoint(8000, 2), facts_of("b1"));
  bench.targets.set_restarted(endpoint(8000, 2));
  bench.wait(2);
  CHECK(bench.current(endpoint(8000, 1)).generation == 1);
  CHECK(bench.current(endpoint(8000, 2)).generation == 2);
  CHECK(bench.deploys->kept().size() == 2);
}

TEST_CASE("slices in which another engine read the same memory do not count") {
  Bench bench;
  bench.find(endpoint(8080), facts_of("b1"));
  bench.find(endpoint(8081), facts_of("b1"));
  bench.decode(300, {endpoint(8080), endpoint(8081)});
  CHECK(bench.deploys->kept().front().state.slices.empty());
  bench.decode(300, {endpoint(8080)});
  CHECK(bench.deploys->kept().front().state.slices.size() > 20);
}

TEST_CASE("another model on the same port is a deploy, and is not compared with the first") {
  Bench bench;
  const Endpoint server = endpoint(8080);
  bench.find(server, facts_of("b1", "small"));
  bench.decode(800, {server});
  bench.targets.learn(server, facts_of("b1", "large"));
  bench.wait(2);
  CHECK(bench.current(server).cause == "model");
  bench.decode(200, {server}, 200);
  CHECK_FALSE(bench.current(server).mbu);
  // And back: what the first one did before is there again.
  bench.targets.learn(server, facts_of("b1", "small"));
  bench.wait(2);
  bench.decode(200, {server});
  REQUIRE(bench.current(server).mbu);
  CHECK(bench.current(server).mbu->ratio == Approx(1).epsilon(0.01));
}

TEST_CASE("a model that is told late names the history that began without it") {
  Bench bench;
  const Endpoint server = endpoint(8080);
  bench.decode(1, {server});
  bench.wait(5);  // shown without an answer
  CHECK(bench.deploys->kept().front().key.model == "unknown");
  bench.targets.learn(server, facts_of("b1"));
  bench.wait(2);
  REQUIRE(bench.deploys->kept().size() == 1);
  CHECK(bench.deploys->kept().front().key.model == "m");
  CHECK(bench.current(server).generation == 1);
}

TEST_CASE("a restart of the daemon is no deploy; what happened meanwhile is") {
  std::vector<KeptDeploys> kept;
  const Endpoint server = endpoint(8080);
  {
    Bench before;
    before.find(server, facts_of("b1"), 100);
    before.decode(800, {server});
    kept = before.deploys->kept();
  }
  struct Row {
    const char* name;
    const char* boot_id;
    std::uint64_t socket;
    const char* version;
    std::uint64_t generation;
    const char* cause;
  };
  const Row rows[] = {{"the same", "boot", 100, "b1", 1, ""},
                      {"its socket cannot be seen", "boot", 0, "b1", 1, ""},
                      {"its socket cannot be seen, and it is another", "boot", 0, "b2", 2, "version"},
                      {"another socket", "boot", 101, "b1", 2, "restart"},
                      {"the machine was started anew", "other", 100, "b1", 2, "restart"},
                      {"another build", "boot", 101, "b2", 2, "version"}};
  for (const Row& row : rows) {
    INFO(row.name);
    Bench after(kept, row.boot_id);
    after.now_ms = 3e9;
    after.find(server, facts_of(row.version), row.socket);
    CHECK(after.current(server).generation == row.generation);
    CHECK(after.current(server).cause == row.cause);
    after.decode(200, {server}, 125);
    CHECK(after.current(server).mbu.has_value() == (row.generation == 2));
  }
}

TEST_CASE("a build that only the responses tell of is a deploy; a word drawn for each of them is not") {
  Bench bench;
  const Endpoint server = endpoint(8080);
  TargetFacts facts = facts_of("");
  facts.identity.reset();
  const auto answer = [&server](Bench& to, const std::string& word) {
    ExchangeBegin begin;
    begin.exchange = to.next;
    begin.server = server;
    begin.at = at_ms(to.now_ms);
    to.targets.on_begin(begin);
    to.targets.on_recognised(to.next, ServerFamily::kUnknown, word);
    ExchangeEnd end;
    end.exchange = to.next++;
    end.at = at_ms(to.now_ms);
    to.targets.on_end(end);
    to.wait(12);
  };
  answer(bench, "fp_1");
  bench.targets.learn(server, facts);
  bench.wait(2);
  SECTION("another build") {
    answer(bench, "fp_1");
    answer(bench, "fp_1");
    const double began = bench.now_ms;
    answer(bench, "fp_2");
    CHECK(bench.current(server).generation == 1);  // one response may have come by another way
    answer(bench, "fp_2");
    CHECK(bench.current(server).generation == 2);
    CHECK(bench.current(server).cause == "version");
    CHECK(bench.current(server).version == "fp_2");
    REQUIRE(bench.current(server).at);
    CHECK(to_seconds(LineTime(bench.current(server).at->since_epoch()) - at_ms(began)) == Approx(0).margin(0.2));
  }
  SECTION("drawn") {
    for (int i = 2; i < 200; ++i) answer(bench, "fp_" + std::to_string(i));
    CHECK(bench.current(server).generation == 1);
    CHECK(bench.targets.snapshots(std::nullopt)[0].version.empty());
    Bench later(bench.deploys->kept());  // the daemon is started anew
    later.now_ms = bench.now_ms + 60e3;
    for (int i = 500; i < 510; ++i) answer(later, "fp_" + std::to_string(i));
    CHECK(later.current(server).generation == 1);
  }
  SECTION("two builds in turn") {
    for (int i = 0; i < 200; ++i) answer(bench, i % 2 == 0 ? "fp_1" : "fp_2");
    CHECK(bench.current(server).generation == 1);
  }
}

TEST_CASE("marks name a target that is there") {
  Bench bench;
  const Endpoint server = endpoint(8080);
  const auto none = bench.deploys->mark({"chat", "v2", false}, at_ms(bench.now_ms));
  REQUIRE_FALSE(none);
  CHECK(none.error().message() == "target chat: no target is known yet");
  bench.find(server, facts_of("b1"));
  const auto wrong = bench.deploys->mark({"chat", "v2", false}, at_ms(bench.now_ms));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message() == "target chat: no such target; there are llama.cpp-8080");
  const auto early = bench.deploys->mark({"llama.cpp-8080", "", true}, at_ms(bench.now_ms));
  REQUIRE_FALSE(early);
  CHECK(early.error().code == ErrorCode::kInvalid);
  const auto marked = bench.deploys->mark({"llama.cpp-8080", "v2", false}, at_ms(bench.now_ms));
  REQUIRE(marked);
  CHECK(*marked == 2);
  CHECK(bench.current(server).cause == "marked");
  CHECK(bench.current(server).version == "v2");
  bench.wait(2);
  CHECK(bench.seen("llama.cpp-8080") == std::array<std::uint64_t, 6>{0, 0, 0, 0, 1, 0});
  REQUIRE(bench.deploys->mark({"llama.cpp-8080", "", true}, at_ms(bench.now_ms)));
  CHECK(bench.current(server).ended);
}

TEST_CASE("what changed is handed out for saving once") {
  Bench bench;
  bench.find(endpoint(8080), facts_of("b1"));
  CHECK(bench.deploys->take_unsaved());
  CHECK_FALSE(bench.deploys->take_unsaved());
  bench.decode(60, {endpoint(8080)});
  CHECK_FALSE(bench.deploys->take_unsaved());
  bench.wait(300);
  CHECK(bench.deploys->take_unsaved());
  bench.targets.set_restarted(endpoint(8080));
  bench.wait(2);
  CHECK(bench.deploys->take_unsaved());
}

TEST_CASE("histories are bounded") {
  std::vector<KeptDeploys> kept;
  for (std::uint16_t port = 1; port <= 60; ++port) {
    KeptDeploys one;
    one.key = {"llama.cpp", "m", port, 0};
    kept.push_back(one);
  }
  Bench bench(kept);
  bench.find(endpoint(8080), facts_of("b1"));
  bench.find(endpoint(8081), facts_of("b1"));
  CHECK(bench.deploys->kept().size() == 32);
  CHECK(bench.current(endpoint(8080)).generation == 1);
}

TEST_CASE("how long a token's text is, a daemon that is started anew still knows") {
  const Endpoint server = endpoint(8080);
  Bench before;
  before.find(server, facts_of("b1"));
  EngineBooks& books = *before.targets.running()[0].books;
  books.set_learned_tokens({{2.5, 8}, {{6.0, 9}, 0.5, 0.01, 9}});
  before.wait(2);
  const std::vector<KeptDeploys> kept = before.deploys->kept();
  CHECK(kept[0].learned.answers.ratio.characters_per_token == 6.0);

  Bench after(kept);
  after.find(server, facts_of("b1"));
  const LearnedTokens learned = after.targets.running()[0].books->learned_tokens();
  CHECK(learned.prompts.characters_per_token == 2.5);
  CHECK(learned.answers.error_of_text == 0.01);

  // Another model has other tokens.
  after.targets.learn(server, facts_of("b1", "another"));
  after.wait(2);
  CHECK(after.targets.running()[0].books->learned_tokens().empty());
}
