// How many token events a core carries from packets in memory into the books, and what a thousand streams cost in
// memory.
//
// Figures for a person: nothing here passes or fails. items_per_second is token events per second.

#include "collectors/tap/exchange_factory.h"
#include "collectors/tap/tap.h"
#include "daemon/wiring.h"
#include "tests/bench/traffic.h"
#include "tests/simulator/model.h"

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

namespace rooflined::bench {
namespace {

constexpr CaptureTime kStart = CaptureTime(std::chrono::seconds(1'700'000'000));

// Takes what the tap says and keeps nothing: the tap alone is measured.
class CountingSink final : public ExchangeSink {
 public:
  void on_begin(const ExchangeBegin& /*begin*/) override {}
  void on_recognised(ExchangeId /*exchange*/, ServerFamily /*family*/, std::string_view /*version*/) override {}
  void on_tokens(const TokenEvent& event) override { tokens += event.tokens; }
  void on_prompt_tokens(ExchangeId /*exchange*/, std::uint64_t /*tokens*/, LineTime /*at*/) override {}
  void on_response_id(ExchangeId /*exchange*/, std::uint64_t /*hash*/, LineTime /*at*/) override {}
  void on_client_window(ExchangeId /*exchange*/, bool /*closed*/, LineTime /*at*/) override {}
  void on_loss(ExchangeId /*exchange*/, double /*tokens*/, LineTime /*at*/) override {}
  void on_end(const ExchangeEnd& /*end*/) override {}

  std::uint64_t tokens = 0;
};

// The line of the daemon, as for a capture file, with a model behind the port.
std::unique_ptr<daemon::Line> make_line() {
  daemon::LineOptions options;
  options.ports = {kServerPort};
  options.local_only = false;
  options.targets.windows = {{"1m", std::chrono::minutes(1)}, {"5m", std::chrono::minutes(5)}};
  const auto model = simulator::load_model("builtin:moe-small");
  const auto geometry = std::make_shared<const Geometry>(model.value().geometry);
  // The line calls back only after it is made, when packets come.
  const auto line = std::make_shared<daemon::Line*>(nullptr);
  options.on_found = [line, geometry](const daemon::Targets::Found& found) {
    daemon::TargetFacts facts;
    facts.geometry = geometry;
    (*line)->targets().learn(found.endpoint, facts);
  };
  auto made = std::make_unique<daemon::Line>(options);
  *line = made.get();
  return made;
}

MemoryCapture capture_of(const TrafficOptions& options, std::size_t tokens) {
  Traffic traffic(options);
  MemoryCapture capture;
  CaptureTime at = kStart;
  traffic.open(at);
  for (std::size_t token = 0; token < tokens; ++token) {
    at += std::chrono::milliseconds(20);
    traffic.step(at);
    capture.add(traffic.take());
  }
  traffic.close(at + std::chrono::milliseconds(20));
  capture.add(traffic.take());
  return capture;
}

TrafficOptions traffic_options(const benchmark::State& state, const char* dialect) {
  TrafficOptions options;
  options.dialect = dialect;
  options.streams = static_cast<std::size_t>(state.range(0));
  options.acknowledgments = state.range(1) != 0;
  return options;
}

constexpr std::size_t kEvents = 100'000;

template <typename Replay>
void replay_repeatedly(benchmark::State& state, const char* dialect, Replay replay) {
  const TrafficOptions options = traffic_options(state, dialect);
  const std::size_t tokens = kEvents / options.streams;
  const MemoryCapture capture = capture_of(options, tokens);
  std::uint64_t seen = 0;
  for (auto _ : state) seen = replay(capture);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * tokens * options.streams));
  state.counters["packets"] =
      benchmark::Counter(static_cast<double>(capture.packets()), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["tokens_missing"] = static_cast<double>(tokens * options.streams) - static_cast<double>(seen);
}

void tap_alone(benchmark::State& state, const char* dialect) {
  replay_repeatedly(state, dialect, [](const MemoryCapture& capture) {
    CountingSink sink;
    tap::ExchangeFactory exchanges(sink);
    tap::Tap tap({{kServerPort}, {}}, exchanges, nullptr);
    capture.replay(tap);
    tap.finish();
    return sink.tokens;
  });
}

void whole_line(benchmark::State& state, const char* dialect) {
  replay_repeatedly(state, dialect, [](const MemoryCapture& capture) {
    const auto line = make_line();
    capture.replay(*line);
    line->finish();
    const auto targets = line->targets().snapshots(50e9);
    return targets.empty() ? 0 : static_cast<std::uint64_t>(targets.front().output_tokens);
  });
}

BENCHMARK_CAPTURE(tap_alone, openai, "openai")
    ->ArgNames({"streams", "acks"})
    ->Args({1, 0})
    ->Args({200, 0})
    ->Args({200, 1});
BENCHMARK_CAPTURE(tap_alone, llama.cpp, "llama.cpp")->ArgNames({"streams", "acks"})->Args({200, 0})->Args({200, 1});
BENCHMARK_CAPTURE(whole_line, openai, "openai")
    ->ArgNames({"streams", "acks"})
    ->Args({1, 0})
    ->Args({200, 0})
    ->Args({200, 1});
BENCHMARK_CAPTURE(whole_line, llama.cpp, "llama.cpp")->ArgNames({"streams", "acks"})->Args({200, 0})->Args({200, 1});

double resident_bytes() {
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return static_cast<double>(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Five minutes of line time, so that every window is full. The traffic itself is made before the first reading.
void memory_of_streams(benchmark::State& state) {
  TrafficOptions options;
  options.streams = static_cast<std::size_t>(state.range(0));
  constexpr int kSteps = 600;
  constexpr Duration kStep = std::chrono::milliseconds(500);
  for (auto _ : state) {
    Traffic traffic(options);
    traffic.step(kStart);  // once, thrown away: the generator's own buffers exist before the first reading
    traffic.take();
    const double before = resident_bytes();
    const auto line = make_line();
    const auto feed = [&] {
      for (const test::TimedPacket& packet : traffic.take()) line->on_packet(packet.view(tap::link_type::kEthernet));
    };
    CaptureTime at = kStart;
    traffic.open(at);
    feed();
    for (int step = 0; step < kSteps; ++step) {
      at += kStep;
      traffic.step(at);
      feed();
    }
    const double growth = resident_bytes() - before;
    state.counters["rss_growth_MB"] = growth / 1e6;
    state.counters["kB_per_stream"] = growth / 1e3 / static_cast<double>(options.streams);
    state.counters["in_flight"] = static_cast<double>(line->targets().exchanges_in_flight());
  }
}

BENCHMARK(memory_of_streams)->ArgName("streams")->Arg(1000)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace rooflined::bench

BENCHMARK_MAIN();
