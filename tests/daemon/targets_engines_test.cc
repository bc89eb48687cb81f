// Several engines behind one port.

#include "tests/daemon/targets_bench.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace rooflined;
using namespace rooflined::daemon;
using namespace rooflined::test;

namespace {

using Bench = TargetsBench;

constexpr double kBandwidth = 100e9;
const Endpoint kOllama = endpoint(11434);

std::shared_ptr<const Geometry> dense(double bytes) {
  auto geometry = std::make_shared<Geometry>();
  geometry->dense_bytes = bytes;
  return geometry;
}

EngineFacts engine(const std::string& model, std::shared_ptr<const Geometry> geometry = nullptr) {
  return {model, {model_name_hash(model)}, std::move(geometry)};
}

// What a server with these models answers.
TargetFacts facts_of(std::vector<EngineFacts> engines) {
  TargetFacts facts;
  facts.family = ServerFamily::kOllama;
  facts.identity.emplace();
  facts.several_engines = true;
  facts.engines = std::move(engines);
  return facts;
}

// `count` tokens of each, a token of the first every 20 ms and one of the second every 10 ms, at the same time.
void stream_two(Bench& bench, ExchangeId first, const char* model, ExchangeId second, const char* other, double ms,
                int count) {
  bench.begin(first, kOllama, ms, model);
  bench.begin(second, kOllama, ms, other);
  bench.targets.on_recognised(first, ServerFamily::kOllama, "");
  bench.targets.on_recognised(second, ServerFamily::kOllama, "");
  for (int i = 1; i <= 2 * count; ++i) {
    const double at = ms + 10 * i;
    if (i % 2 == 0) bench.token(first, at);
    if (i <= count) bench.token(second, at);
    bench.targets.advance_to(at_ms(at));
  }
  bench.end(first, ms + 20 * count + 1);
  bench.end(second, ms + 10 * count + 1);
}

const TargetSnapshot& shown(const std::vector<TargetSnapshot>& snapshots, const std::string& model) {
  const auto found = std::find_if(snapshots.begin(), snapshots.end(),
                                  [&](const TargetSnapshot& snapshot) { return snapshot.model == model; });
  REQUIRE(found != snapshots.end());
  return *found;
}

}  // namespace

TEST_CASE("two models behind one port: each has books of its own, and the MBU of its own geometry") {
  Bench bench;
  bench.exchange(1, kOllama, 0, ServerFamily::kOllama, "small");
  bench.targets.learn(kOllama, facts_of({engine("small:latest", dense(0.5e9)), engine("large:8b", dense(1.5e9))}));
  // Its first exchange was of one model only: that one's books go on under its name.
  stream_two(bench, 2, "large:8b", 3, "Small", 100, 50);
  bench.targets.advance_to(at_ms(5000));
  const auto snapshots = bench.targets.snapshots(kBandwidth);
  REQUIRE(snapshots.size() == 2);
  CHECK(snapshots[0].target == "ollama-11434");
  CHECK(snapshots[1].target == "ollama-11434");
  CHECK_FALSE(snapshots[0].further);
  CHECK(snapshots[1].further);
  const TargetSnapshot& small = shown(snapshots, "small:latest");
  const TargetSnapshot& large = shown(snapshots, "large:8b");
  CHECK(small.output_tokens == 52);
  CHECK(large.output_tokens == 50);
  REQUIRE(small.windows.at(0).mbu_ratio);
  REQUIRE(large.windows.at(0).mbu_ratio);
  CHECK(*small.windows[0].mbu_ratio == Approx(0.5e9 / 0.010 / kBandwidth));
  CHECK(*large.windows[0].mbu_ratio == Approx(1.5e9 / 0.020 / kBandwidth));
  CHECK(*small.windows[0].batch_size == Approx(1));
  CHECK(*large.windows[0].batch_size == Approx(1));
  CHECK(bench.targets.exchanges_in_flight() == 0);
}

TEST_CASE("what a client invents is never shown, and what is mixed there has no batch") {
  Bench bench;
  bench.exchange(1, kOllama, 0, ServerFamily::kOllama, "a");
  bench.targets.learn(kOllama, facts_of({engine("a", dense(1e9)), engine("b", dense(1e9))}));
  stream_two(bench, 2, "zinnoberkanarie", 3, "another", 100, 50);
  bench.targets.advance_to(at_ms(5000));
  const auto snapshots = bench.targets.snapshots(kBandwidth);
  REQUIRE(snapshots.size() == 2);
  CHECK(snapshots[0].model == "a");
  CHECK(snapshots[1].model == "unknown");
  CHECK(snapshots[1].output_tokens == 100);
  CHECK_FALSE(snapshots[1].windows.at(0).batch_size);
  CHECK_FALSE(snapshots[1].windows.at(0).mbu_ratio);
  CHECK(snapshots[1].windows.at(0).tokens_per_second > 0);
}

TEST_CASE("a server of one model answers with that, whatever its clients call it") {
  Bench bench;
  bench.exchange(1, kOllama, 0, ServerFamily::kOllama, "x");
  bench.exchange(2, kOllama, 100, ServerFamily::kOllama, "y");
  bench.targets.learn(kOllama, facts_of({engine("m", dense(1e9))}));
  bench.exchange(3, kOllama, 200, ServerFamily::kOllama, "z");
  bench.targets.advance_to(at_ms(5000));
  const auto snapshots = bench.targets.snapshots(kBandwidth);
  REQUIRE(snapshots.size() == 1);
  CHECK(snapshots[0].model == "m");
  CHECK(snapshots[0].output_tokens == 6);
  CHECK(snapshots[0].windows.at(0).batch_size);
}

TEST_CASE("before the server was asked, or where it cannot be: two models at once have no batch") {
  Bench bench;
  stream_two(bench, 1, "a", 2, "b", 0, 50);
  bench.targets.advance_to(at_ms(5000));
  auto snapshots = bench.targets.snapshots(kBandwidth);
  REQUIRE(snapshots.size() == 1);
  CHECK(snapshots[0].model == "unknown");
  CHECK_FALSE(snapshots[0].windows.at(0).batch_size);
  CHECK(snapshots[0].output_tokens == 100);
  // They stay unknown: nobody can say which of them was whose.
  bench.targets.learn(kOllama, facts_of({engine("a"), engine("b")}));
  bench.exchange(3, kOllama, 6000, ServerFamily::kOllama, "a");
  bench.targets.advance_to(at_ms(7000));
  snapshots = bench.targets.snapshots(kBandwidth);
  REQUIRE(snapshots.size() == 2);
  CHECK(shown(snapshots, "unknown").output_tokens == 100);
  CHECK(shown(snapshots, "a").output_tokens == 2);
}

TEST_CASE("beyond models_max the models of a target are one, without a batch") {
  Targets::Options options;
  options.models_max = 2;
  Bench bench(options);
  bench.exchange(1, kOllama, 0, ServerFamily::kOllama, "a");
  std::vector<EngineFacts> engines;
  for (const char* model : {"a", "b", "c", "d"}) engines.push_back(engine(model, dense(1e9)));
  bench.targets.learn(kOllama, facts_of(engines));
  ExchangeId id = 2;
  for (const char* model : {"b", "c", "d", "b"}) {
    bench.exchange(id, kOllama, 100.0 * static_cast<double>(id), ServerFamily::kOllama, model);
    ++id;
  }
  bench.targets.advance_to(at_ms(5000));
  const auto snapshots = bench.targets.snapshots(kBandwidth);
  REQUIRE(snapshots.size() == 3);
  CHECK(shown(snapshots, "a").output_tokens == 2);
  CHECK(shown(snapshots, "b").output_tokens == 4);
  CHECK(shown(snapshots, "other").output_tokens == 4);
  CHECK_FALSE(shown(snapshots, "other").windows.at(0).batch_size);
}

TEST_CASE("a model that was loaded later is asked for once it has answered, ever more rarely") {
  Bench bench;
  bench.exchange(1, kOllama, 0, ServerFamily::kOllama, "a");
  bench.targets.learn(kOllama, facts_of({engine("a", dense(1e9)), engine("b")}));
  REQUIRE(bench.found.size() == 1);
  bench.exchange(2, kOllama, 1000, ServerFamily::kOllama, "a");
  CHECK(bench.found.size() == 1);
  for (int i = 0; i < 100; ++i) {
    bench.targets.advance_to(at_ms(2000 + 1000.0 * i));
    bench.exchange(static_cast<ExchangeId>(3 + i), kOllama, 2000 + 1000.0 * i, ServerFamily::kOllama, "b");
  }
  CHECK(bench.found.size() == 5);  // after 0, 10, 30 and 70 s
  bench.targets.learn(kOllama, facts_of({engine("a", dense(1e9)), engine("b", dense(2e9))}));
  bench.exchange(200, kOllama, 200'000, ServerFamily::kOllama, "b");
  bench.targets.advance_to(at_ms(201'000));
  CHECK(shown(bench.targets.snapshots(kBandwidth), "b").geometry);
}

TEST_CASE("a model that is no longer used is forgotten after a while; another kind of server keeps its counters") {
  Bench bench;
  bench.exchange(1, kOllama, 0, ServerFamily::kOllama, "a");
  bench.targets.learn(kOllama, facts_of({engine("a"), engine("b")}));
  bench.exchange(2, kOllama, 1000, ServerFamily::kOllama, "b");
  bench.targets.advance_to(at_ms(3'500'000));
  CHECK(bench.targets.snapshots(kBandwidth).size() == 2);
  bench.targets.advance_to(at_ms(3'700'000));
  CHECK(bench.targets.snapshots(kBandwidth).size() == 1);

  bench.exchange(3, kOllama, 3'800'000, ServerFamily::kOllama, "b");
  TargetFacts plain;
  plain.family = ServerFamily::kLlamaCpp;
  plain.identity.emplace();
  plain.model = "m.gguf";
  bench.targets.learn(kOllama, plain);
  bench.exchange(4, kOllama, 3'810'000, ServerFamily::kLlamaCpp, "b");
  bench.targets.advance_to(at_ms(3'820'000));
  const auto snapshots = bench.targets.snapshots(kBandwidth);
  CHECK(shown(snapshots, "m.gguf").output_tokens == 2);
  CHECK(shown(snapshots, "a").retired);
  CHECK(shown(snapshots, "b").retired);
  CHECK(shown(snapshots, "b").output_tokens == 2);
}

TEST_CASE("what a proxy passes on has no books by model there") {
  Bench bench;
  bench.exchange(1, kOllama, 0, ServerFamily::kOllama, "a");
  bench.targets.learn(kOllama, facts_of({engine("a"), engine("b")}));
  bench.exchange(2, endpoint(41234), 1000, ServerFamily::kLlamaCpp);
  for (ExchangeId id = 3; id < 6; ++id) {
    bench.begin(id, kOllama, 1000, id % 2 == 0 ? "a" : "b");
    bench.targets.on_proxied(id, kOllama, endpoint(41234));
  }
  bench.targets.advance_to(at_ms(5000));
  // One of them began when nobody knew yet that it is a proxy.
  for (const TargetSnapshot& snapshot : bench.targets.snapshots(kBandwidth)) {
    INFO(snapshot.model);
    CHECK_FALSE(snapshot.further);
  }
}

TEST_CASE("a router's children are of its family and port, and none of them is the router") {
  Bench bench;
  bench.exchange(1, endpoint(8080), 0, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(20'000));
  // Later than a server in a rolling update would have to be known for.
  bench.targets.set_child_ports(8080, {41234, 45678});
  TargetFacts facts;
  for (const auto& [port, model] : {std::pair(41234, "one.gguf"), std::pair(45678, "two.gguf")}) {
    const Endpoint child = endpoint(static_cast<std::uint16_t>(port));
    bench.exchange(child.port, child, 20'000, ServerFamily::kLlamaCpp);
    facts.model = model;
    bench.targets.learn(child, facts);
  }
  bench.targets.advance_to(at_ms(21'000));
  auto snapshots = bench.targets.snapshots(100e9);
  REQUIRE(snapshots.size() == 3);
  CHECK(snapshots[0].target == "llama.cpp-8080");
  CHECK(snapshots[1].target == "llama.cpp-8080-2");
  CHECK(snapshots[1].model == "one.gguf");
  CHECK(snapshots[2].target == "llama.cpp-8080-3");
  CHECK(snapshots[2].model == "two.gguf");
  // The router is gone: a new child is not the router at another address.
  bench.targets.set_up(endpoint(8080), false, at_ms(22'000));
  bench.targets.set_child_ports(8080, {50000});
  bench.exchange(9, endpoint(50000), 23'000, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(27'000));
  snapshots = bench.targets.snapshots(100e9);
  REQUIRE(snapshots.size() == 4);
  CHECK(snapshots[0].port == 8080);
}

TEST_CASE("a child keeps its name over its ports, and leaves with its socket") {
  Bench bench;
  bench.targets.set_child_ports(11434, {41234});
  bench.exchange(1, endpoint(41234), 0, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(4000));
  CHECK(bench.targets.snapshots(100e9)[0].target == "llama.cpp-11434");
  bench.targets.set_up(endpoint(41234), false, at_ms(5000));
  bench.targets.advance_to(at_ms(5001));
  CHECK(bench.targets.snapshots(100e9).empty());
  bench.targets.set_child_ports(11434, {45678});
  bench.exchange(2, endpoint(45678), 6000, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(10'000));
  REQUIRE(bench.targets.snapshots(100e9).size() == 1);
  CHECK(bench.targets.snapshots(100e9)[0].target == "llama.cpp-11434");
}

TEST_CASE("a child reads the memory that its parent's settings tell of, and is no configured target") {
  TargetSettings parent;
  parent.port = 11434;
  parent.name = "chat";
  parent.device = Device::kGpu;
  parent.gpu_bandwidth = kBandwidth;
  Targets::Options options;
  options.settings = {parent};
  Bench bench(options);
  bench.targets.set_child_ports(11434, {41234});
  bench.exchange(1, endpoint(41234), 0, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(5000));
  const auto snapshots = bench.targets.snapshots({});
  REQUIRE(snapshots.size() == 1);
  CHECK(snapshots[0].target == "llama.cpp-11434");
  CHECK(snapshots[0].memory == "gpu");
  CHECK(snapshots[0].bandwidth == kBandwidth);
  CHECK_FALSE(snapshots[0].configured);
}
