// The ledger against simulated engines whose truth is known: steps of W(B) + Σ KV over bandwidth × efficiency, seeded
// arrivals, sequences of random length, prefill between the steps or free. Exact event times, so the bar is tight.

#include "metrics/decode_ledger.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

#include <random>
#include <vector>

using namespace rooflined;
using namespace rooflined::test;

namespace {

struct Truth {
  double passes = 0;
  double bytes = 0;
  double decode_seconds = 0;
};

struct Running {
  SequenceId id;
  double context;
  int left;
};

struct Engine {
  Geometry geometry;
  double bandwidth = 100e9;
  double efficiency = 0.6;
  double prefill_seconds_per_token = 0;
  std::size_t batch_max = 8;
  unsigned seed = 1;
};

// Runs the engine and feeds the ledger. A sequence that is prefilled in a step is not in that step's decode.
Truth run(const Engine& engine, DecodeLedger& ledger, int requests) {
  std::mt19937 random(engine.seed);
  std::uniform_int_distribution<int> length(20, 200);
  std::uniform_int_distribution<int> prompt(10, 400);
  std::vector<Running> running;
  Truth truth;
  double now = 1;
  SequenceId next = 1;
  while (next <= static_cast<SequenceId>(requests) || !running.empty()) {
    std::vector<Running> admitted;
    double prefill = 0;
    while (next <= static_cast<SequenceId>(requests) && running.size() + admitted.size() < engine.batch_max) {
      const double tokens = prompt(random);
      ledger.request(next, at_ms(now * 1e3));
      ledger.begin(next, next, at_ms(now * 1e3), tokens, true);
      admitted.push_back(Running{next, tokens, length(random)});
      prefill += tokens * engine.prefill_seconds_per_token;
      ++next;
    }
    double step = prefill;
    if (!running.empty()) {
      double bytes = engine.geometry.weight_bytes(static_cast<double>(running.size())).total();
      for (const Running& sequence : running) bytes += engine.geometry.kv_bytes(sequence.context);
      step += bytes / (engine.bandwidth * engine.efficiency);
      truth.passes += 1;
      truth.bytes += bytes;
      truth.decode_seconds += step;
    }
    now += std::max(step, 1e-6);
    const LineTime at = at_ms(now * 1e3);
    std::vector<Running> still;
    for (auto* group : {&running, &admitted}) {
      for (Running sequence : *group) {
        ledger.tokens(sequence.id, at, 1, 1, TokenSource::kExactLive);
        sequence.context += 1;
        if (--sequence.left > 0) {
          still.push_back(sequence);
        } else {
          ledger.end(sequence.id, at, Outcome::kOk, {.finished_at = at});
        }
      }
    }
    running = std::move(still);
    ledger.advance_to(at);
  }
  ledger.finish();
  return truth;
}

Geometry dense() {
  Geometry geometry;
  geometry.dense_bytes = 1.5e9;
  geometry.kv_groups = {{28, 1024, 0}};
  return geometry;
}

Geometry moe() {
  Geometry geometry;
  geometry.dense_bytes = 0.9e9;
  geometry.expert_groups = {{48, 128, 8, 4.7e6}};
  geometry.kv_groups = {{24, 2048, 0}, {24, 2048, 128}};
  return geometry;
}

}  // namespace

TEST_CASE("MBU and passes equal the truth of a simulated engine", "[sim]") {
  for (const bool is_moe : {false, true}) {
    for (const std::size_t batch : {std::size_t{1}, std::size_t{4}, std::size_t{16}, std::size_t{58}}) {
      for (const double efficiency : {0.3, 0.9}) {
        for (const double prefill : {0.0, 20e-6}) {
          Engine engine;
          engine.geometry = is_moe ? moe() : dense();
          engine.batch_max = batch;
          engine.efficiency = efficiency;
          engine.prefill_seconds_per_token = prefill;
          engine.seed = static_cast<unsigned>(batch) + (is_moe ? 100 : 0);
          LedgerLog log;
          DecodeLedger ledger(DecodeLedger::Options{}, log);
          ledger.set_geometry(std::make_shared<Geometry>(engine.geometry));
          const Truth truth = run(engine, ledger, 40 + static_cast<int>(batch) * 4);
          INFO("moe " << is_moe << " batch " << batch << " efficiency " << efficiency << " prefill " << prefill
                      << " seed " << engine.seed);
          CHECK(log.passes == Approx(truth.passes).epsilon(0.001));
          CHECK(log.bytes == Approx(truth.bytes).epsilon(0.001));
          const double mbu = log.bytes / (log.busy_seconds * engine.bandwidth);
          CHECK(mbu == Approx(truth.bytes / (truth.decode_seconds * engine.bandwidth)).margin(0.001));
        }
      }
    }
  }
}
