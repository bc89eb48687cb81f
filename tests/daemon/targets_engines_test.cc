// Several engines behind one port.

#include "tests/daemon/targets_bench.h"
#include "tests/support/catch.h"

#include <utility>
#include <vector>

using namespace rooflined;
using namespace rooflined::daemon;
using namespace rooflined::test;

namespace {

using Bench = TargetsBench;

}  // namespace

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
