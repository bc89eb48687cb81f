#include "daemon/targets.h"

#include "tests/daemon/targets_bench.h"
#include "tests/support/catch.h"

#include <vector>

using namespace rooflined;
using namespace rooflined::daemon;
using namespace rooflined::test;

namespace {

using Bench = TargetsBench;

}  // namespace

TEST_CASE("a target appears at its first recognised exchange, named by family and port") {
  Bench bench;
  bench.begin(1, endpoint(8080), 0);
  bench.end(1, 5);  // a 404, say: nobody knows what it was
  CHECK(bench.found.empty());
  bench.exchange(2, endpoint(8080), 100, ServerFamily::kLlamaCpp);
  REQUIRE(bench.found.size() == 1);
  bench.targets.advance_to(at_ms(1000));
  CHECK(bench.targets.snapshots(std::nullopt).empty());  // not asked yet

  TargetFacts facts;
  facts.model = "Qwen2.5-0.5B.gguf";
  facts.version = "b4748";
  bench.targets.learn(endpoint(8080), facts);
  bench.targets.advance_to(at_ms(1001));
  const auto snapshots = bench.targets.snapshots(100e9);
  REQUIRE(snapshots.size() == 1);
  CHECK(snapshots[0].target == "llama.cpp-8080");
  CHECK(snapshots[0].model == "Qwen2.5-0.5B.gguf");
  CHECK(snapshots[0].version == "b4748");
  CHECK(snapshots[0].bandwidth == std::optional<double>(100e9));
  CHECK(snapshots[0].output_tokens == 2);
  CHECK(snapshots[0].requests[0] == 1);
}

TEST_CASE("a target that nobody could ask is shown after a while, without a model") {
  Bench bench;
  bench.exchange(1, endpoint(8000), 0, ServerFamily::kUnknown);
  bench.targets.advance_to(at_ms(4000));
  const auto snapshots = bench.targets.snapshots(std::nullopt);
  REQUIRE(snapshots.size() == 1);
  CHECK(snapshots[0].target == "openai-8000");
  CHECK(snapshots[0].model == "unknown");
}

TEST_CASE("two servers on the same port have different names") {
  Bench bench;
  bench.exchange(1, endpoint(8000, 1), 0, ServerFamily::kVllm);
  bench.exchange(2, endpoint(8000, 2), 0, ServerFamily::kVllm);
  bench.targets.advance_to(at_ms(4000));
  const auto snapshots = bench.targets.snapshots(std::nullopt);
  REQUIRE(snapshots.size() == 2);
  CHECK(snapshots[0].target == "vllm-8000");
  CHECK(snapshots[1].target == "vllm-8000-2");
}

TEST_CASE("requests that wait for their first frame join the target that another one found") {
  Bench bench;
  bench.begin(1, endpoint(8080), 0);
  bench.begin(2, endpoint(8080), 1);
  CHECK(bench.targets.exchanges_in_flight() == 2);
  bench.targets.on_recognised(1, ServerFamily::kLlamaCpp, "");
  CHECK(bench.targets.exchanges_in_flight() == 2);
  bench.token(2, 50);
  bench.end(2, 51);
  bench.end(1, 52);
  CHECK(bench.targets.exchanges_in_flight() == 0);
  bench.targets.advance_to(at_ms(5000));
  CHECK(bench.targets.snapshots(std::nullopt)[0].requests[0] == 2);
}

TEST_CASE("which memory a target reads from") {
  struct Row {
    const char* name;
    ServerFamily family;
    Device setting;
    bool gpu_present;
    std::optional<double> bandwidth;
    bool offload;
  };
  const Row rows[] = {
      {"llama.cpp without a GPU", ServerFamily::kLlamaCpp, Device::kAuto, false, 100e9, false},
      {"llama.cpp beside a GPU", ServerFamily::kLlamaCpp, Device::kAuto, true, std::nullopt, true},
      {"llama.cpp beside a GPU, told", ServerFamily::kLlamaCpp, Device::kCpu, true, 100e9, false},
      {"vLLM", ServerFamily::kVllm, Device::kAuto, true, 3000e9, false},
      {"vLLM on the CPU, told", ServerFamily::kVllm, Device::kCpu, false, 100e9, false},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Targets::Options options;
    options.gpu_present = row.gpu_present;
    TargetSettings settings;
    settings.port = 8000;
    settings.device = row.setting;
    settings.gpu_bandwidth = 3000e9;
    options.settings = {settings};
    Bench bench(options);
    bench.exchange(1, endpoint(8000), 0, row.family);
    bench.targets.advance_to(at_ms(4000));
    const TargetSnapshot snapshot = bench.targets.snapshots(100e9)[0];
    CHECK(snapshot.bandwidth == row.bandwidth);
    CHECK((std::find(snapshot.caveats.begin(), snapshot.caveats.end(), "offload") != snapshot.caveats.end()) ==
          row.offload);
  }
}

TEST_CASE("a target that is gone loses its gauges at once, and itself after an hour") {
  Bench bench;
  bench.exchange(1, endpoint(8080), 0, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(10'000));
  REQUIRE_FALSE(bench.targets.snapshots(100e9)[0].windows.empty());
  bench.targets.set_up(endpoint(8080), false, at_ms(10'000));
  const TargetSnapshot gone = bench.targets.snapshots(100e9)[0];
  CHECK_FALSE(gone.up);
  CHECK(gone.windows.empty());
  CHECK_FALSE(gone.bandwidth);
  CHECK(gone.output_tokens == 2);
  bench.targets.advance_to(at_ms(10'000 + 3599e3));
  CHECK(bench.targets.snapshots(100e9).size() == 1);
  bench.targets.advance_to(at_ms(10'000 + 3602e3));
  CHECK(bench.targets.snapshots(100e9).empty());
}

TEST_CASE("a target that comes back is asked again") {
  Bench bench;
  bench.exchange(1, endpoint(8080), 0, ServerFamily::kLlamaCpp);
  bench.targets.set_up(endpoint(8080), false, at_ms(1000));
  bench.targets.set_up(endpoint(8080), true, at_ms(2000));
  CHECK(bench.found.size() == 2);
  bench.begin(2, endpoint(8080), 3000);
  bench.targets.on_recognised(2, ServerFamily::kLlamaCpp, "v2");  // another build answers
  CHECK(bench.found.size() == 3);
}

TEST_CASE("a server of the same kind in the place of one that is gone bears its name") {
  Bench bench;
  bench.exchange(1, endpoint(8000, 1), 0, ServerFamily::kVllm);
  bench.targets.advance_to(at_ms(4000));
  bench.targets.set_up(endpoint(8000, 1), false, at_ms(5000));
  bench.exchange(2, endpoint(8000, 2), 6000, ServerFamily::kVllm);
  bench.exchange(3, endpoint(8000, 3), 6000, ServerFamily::kSglang);  // of another kind
  bench.targets.advance_to(at_ms(10'000));
  const auto snapshots = bench.targets.snapshots(std::nullopt);
  REQUIRE(snapshots.size() == 2);
  CHECK(snapshots[0].target == "sglang-8000");
  CHECK(snapshots[1].target == "vllm-8000");
  CHECK(snapshots[1].up);
  const auto running = bench.targets.running();
  REQUIRE(running.size() == 2);
  CHECK(running[0].endpoint == endpoint(8000, 2));
}

TEST_CASE("a new server beside one of the same kind waits until it is known whether it takes its place") {
  Bench bench;
  bench.exchange(1, endpoint(8000, 1), 0, ServerFamily::kVllm);
  bench.targets.advance_to(at_ms(20'000));
  bench.exchange(2, endpoint(8000, 2), 20'000, ServerFamily::kVllm);
  bench.exchange(3, endpoint(8001, 2), 20'000, ServerFamily::kVllm);  // on a port of its own
  for (double ms = 21e3; ms < 50e3; ms += 1e3) bench.targets.advance_to(at_ms(ms));
  CHECK(bench.targets.snapshots(std::nullopt).size() == 2);
  CHECK(bench.targets.unshown().size() == 1);
  SECTION("the old one is gone") {
    bench.targets.set_up(endpoint(8000, 1), false, at_ms(50e3));
    bench.targets.advance_to(at_ms(50e3));
    const auto snapshots = bench.targets.snapshots(std::nullopt);
    REQUIRE(snapshots.size() == 2);
    CHECK(snapshots[0].target == "vllm-8000");
    CHECK(snapshots[0].up);
    CHECK(snapshots[0].output_tokens == 2);
    CHECK(bench.targets.running()[0].endpoint == endpoint(8000, 2));
  }
  SECTION("both stay") {
    bench.targets.advance_to(at_ms(66e3));
    const auto snapshots = bench.targets.snapshots(std::nullopt);
    REQUIRE(snapshots.size() == 3);
    CHECK(snapshots[1].target == "vllm-8000-2");
    CHECK(snapshots[1].output_tokens == 2);
  }
}

TEST_CASE("a server that refused a connection was started anew once it answers") {
  Bench bench;
  const Endpoint server = endpoint(8000);
  bench.exchange(1, server, 0, ServerFamily::kVllm);
  bench.targets.advance_to(at_ms(4000));
  SECTION("while it answers others it runs") {
    bench.begin(2, server, 5000);
    bench.targets.set_refused(server);
    bench.begin(3, server, 5100);
    CHECK(bench.targets.running()[0].restarts == 0);
  }
  SECTION("where its socket is seen, that tells") {
    bench.targets.set_socket(server, 77);
    bench.targets.set_refused(server);
    bench.begin(2, server, 5000);
    CHECK(bench.targets.running()[0].restarts == 0);
  }
  SECTION("refused, and back") {
    bench.targets.set_refused(server);
    CHECK(bench.targets.running()[0].restarts == 0);
    bench.begin(2, server, 5000);
    bench.begin(3, server, 5100);
    CHECK(bench.targets.running()[0].restarts == 1);
    CHECK(bench.found.size() == 2);  // it is asked again
  }
  SECTION("gone, and back without a socket that is seen") {
    bench.targets.set_up(server, false, at_ms(5000));
    bench.begin(2, server, 6000);
    CHECK(bench.targets.running()[0].restarts == 1);
    CHECK(bench.targets.running()[0].up);
  }
}

TEST_CASE("targets on the same memory add up") {
  TargetSnapshot a;
  a.memory = "ram";
  a.windows.resize(1);
  a.windows[0].window = "1m";
  a.windows[0].decode_bandwidth_ratio = 0.2;
  TargetSnapshot b = a;
  b.windows[0].decode_bandwidth_ratio = 0.3;
  TargetSnapshot c = a;
  c.memory = "gpu";
  TargetSnapshot cached = a;  // no load on the memory
  cached.caveats = {"cache_assisted"};
  const auto ratios = Targets::node_ratios({a, b, c, cached});
  REQUIRE(ratios.size() == 2);
  CHECK(ratios[0].ratio == Approx(0.5));
  CHECK(ratios[1].memory == "gpu");
}

TEST_CASE("an engine pinned to memory nodes has their bandwidth, and a caveat") {
  Targets::Options options;
  TargetSettings pinned;
  pinned.port = 8080;
  pinned.numa_nodes = {1};
  TargetSettings elsewhere = pinned;
  elsewhere.port = 8081;
  elsewhere.numa_nodes = {1, 5};
  options.settings = {pinned, elsewhere};
  Bench bench(options);
  bench.exchange(1, endpoint(8080), 0, ServerFamily::kLlamaCpp);
  bench.exchange(2, endpoint(8081), 0, ServerFamily::kLlamaCpp);
  bench.exchange(3, endpoint(8082), 0, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(4000));
  bench.targets.set_memory_nodes({{0, 60e9, 59e9, true}, {1, 40e9, 39e9, true}});
  const auto snapshots = bench.targets.snapshots(100e9);
  REQUIRE(snapshots.size() == 3);
  CHECK(snapshots[0].bandwidth == 40e9);
  CHECK(snapshots[0].caveats == std::vector<std::string>{"numa_bound"});
  CHECK(snapshots[1].bandwidth == 100e9);  // node 5 was not measured
  CHECK(snapshots[1].caveats == std::vector<std::string>{"numa_bound"});
  CHECK(snapshots[2].bandwidth == 100e9);
  CHECK(snapshots[2].caveats.empty());
}

TEST_CASE("the number of targets is bounded, and what exceeds it leaves nothing behind") {
  Targets::Options options;
  options.targets_max = 2;
  Bench bench(options);
  for (std::uint8_t i = 1; i <= 5; ++i) bench.exchange(i, endpoint(8080, i), 0, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(4000));
  CHECK(bench.targets.snapshots(std::nullopt).size() == 2);
  CHECK(bench.targets.exchanges_in_flight() == 0);
  CHECK(bench.targets.exchanges_refused() == 3);
}

TEST_CASE("a server on all addresses is one target, whichever address its clients use") {
  Targets::Options options;
  options.same_listener = [](const Endpoint& known, const Endpoint& seen) {
    return known.address[15] < 10 && seen.address[15] < 10;  // 1 to 9 are addresses of this host, say
  };
  Bench bench(options);
  bench.exchange(1, endpoint(8080, 1), 0, ServerFamily::kLlamaCpp);
  bench.exchange(2, endpoint(8080, 2), 100, ServerFamily::kLlamaCpp);
  bench.exchange(3, endpoint(8080, 2), 200, ServerFamily::kLlamaCpp);
  bench.exchange(4, endpoint(8080, 77), 300, ServerFamily::kLlamaCpp);  // a container
  bench.targets.advance_to(at_ms(4000));
  const auto snapshots = bench.targets.snapshots(std::nullopt);
  REQUIRE(snapshots.size() == 2);
  CHECK(snapshots[0].output_tokens == 6);
  CHECK(snapshots[1].output_tokens == 2);
  CHECK(bench.targets.exchanges_in_flight() == 0);
}

TEST_CASE("another model on the same port has counters of its own, and the first one keeps its") {
  Bench bench;
  bench.exchange(1, endpoint(8080), 0, ServerFamily::kLlamaCpp);
  TargetFacts facts;
  facts.model = "small.gguf";
  bench.targets.learn(endpoint(8080), facts);
  bench.begin(2, endpoint(8080), 50);
  bench.token(2, 60);
  facts.model = "large.gguf";
  bench.targets.learn(endpoint(8080), facts);
  bench.token(2, 70);  // of a stream that began before
  bench.end(2, 71);
  bench.exchange(3, endpoint(8080), 100, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(4000));
  auto snapshots = bench.targets.snapshots(100e9);
  REQUIRE(snapshots.size() == 2);
  CHECK(snapshots[0].model == "large.gguf");
  CHECK(snapshots[0].output_tokens == 2);
  CHECK_FALSE(snapshots[0].retired);
  CHECK(snapshots[1].model == "small.gguf");
  CHECK(snapshots[1].target == snapshots[0].target);
  CHECK(snapshots[1].output_tokens == 4);
  CHECK(snapshots[1].retired);
  bench.targets.advance_to(at_ms(3'700'000));
  CHECK(bench.targets.snapshots(100e9).size() == 1);
}

TEST_CASE("with flows left out, tokens/s are scaled and what needs all sequences is absent") {
  Bench bench;
  bench.exchange(1, endpoint(8080), 0, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(10'000));
  bench.targets.set_share(4);
  bench.targets.advance_to(at_ms(10'000 + 60e3));
  bench.exchange(2, endpoint(8080), 10'000 + 60e3, ServerFamily::kLlamaCpp);
  bench.targets.advance_to(at_ms(10'000 + 65e3));
  const TargetSnapshot snapshot = bench.targets.snapshots(100e9)[0];
  CHECK(std::find(snapshot.caveats.begin(), snapshot.caveats.end(), "sampled") != snapshot.caveats.end());
  REQUIRE_FALSE(snapshot.windows.empty());
  CHECK(snapshot.windows[0].tokens_per_second == Approx(4 * 2 / 60.0).epsilon(0.05));
  CHECK_FALSE(snapshot.windows[0].mbu_ratio);
  CHECK_FALSE(snapshot.windows[0].batch_size);
  CHECK_FALSE(snapshot.windows[0].decode_bytes_per_second);
  CHECK(snapshot.output_tokens == 4);  // counters are as counted
  bench.targets.set_share(1);
  bench.targets.advance_to(at_ms(10'000 + 140e3));
  CHECK(bench.targets.snapshots(100e9)[0].caveats.empty());
}
