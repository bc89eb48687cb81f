// A speculating engine whose truth is known: four drafts, three acceptances, one and eight sequences, frames back to
// back (llama.cpp) or one frame of k tokens (vLLM), which tells k or not, and everything from the setting to no word.

#include "metrics/decode_ledger.h"

#include "tests/simulator/engine.h"
#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

#include <random>

using namespace rooflined;
using namespace rooflined::test;

namespace {

enum class Said { kSetting, kAtTheEnd, kNever };
enum class Frames { kEachToken, kCounted, kUncounted };

struct Case {
  bool is_moe = false;
  double acceptance = 0;
  std::size_t batch = 1;
  Frames frames = Frames::kEachToken;
  Said said = Said::kNever;
  unsigned seed = 1;
};

simulator::EngineOptions engine_options(const Case& one) {
  simulator::EngineOptions options;
  options.geometry.dense_bytes = 1.5e9;
  options.geometry.kv_groups = {{28, 1024, 0}};
  if (one.is_moe) options.geometry.expert_groups = {{48, 128, 8, 4.7e6}};
  options.bandwidth = 100e9;
  options.efficiency = 0.6;
  options.batch_max = one.batch;
  options.prefill_tokens_per_second = 20'000;
  options.draft_tokens = 4;
  options.acceptance = one.acceptance;
  options.seed = one.seed;
  return options;
}

// The frames of a pass leave one after the other, 20 to 900 µs apart; or as one.
void deliver(const Case& one, const simulator::Emission& emission, double end_ms, double& sent_ms, std::mt19937& random,
             DecodeLedger& ledger) {
  sent_ms = std::max(sent_ms, end_ms);
  if (one.frames == Frames::kCounted) {
    ledger.tokens(emission.id, at_ms(sent_ms), static_cast<std::uint32_t>(emission.tokens), 1, TokenSource::kExactLive);
    return;
  }
  if (one.frames == Frames::kUncounted) {
    ledger.tokens(emission.id, at_ms(sent_ms), 1, 1, TokenSource::kEstimated);
    return;
  }
  std::uniform_real_distribution<double> gap(0.02, 0.9);
  for (std::uint64_t i = 0; i < emission.tokens; ++i) {
    ledger.tokens(emission.id, at_ms(sent_ms + static_cast<double>(i) * gap(random) / 4), 1, 1,
                  TokenSource::kEstimated);
  }
}

simulator::Truth run(const Case& one, DecodeLedger& ledger) {
  std::mt19937 random(one.seed);
  std::uniform_int_distribution<std::uint64_t> length(100, 400);
  std::uniform_int_distribution<std::uint64_t> prompt(10, 400);
  simulator::Engine engine(engine_options(one));
  double now_ms = 1000;
  for (simulator::SequenceId id = 1; id <= 10 + 3 * one.batch; ++id) {
    const std::uint64_t tokens = prompt(random);
    engine.submit({id, tokens, length(random)});
    ledger.request(id, at_ms(now_ms));
    ledger.begin(id, id, at_ms(now_ms), static_cast<double>(tokens), true);
  }
  while (!engine.idle()) {
    const simulator::Step& step = engine.step();
    now_ms += step.seconds * 1e3;
    for (const simulator::Emission& emission : step.emissions) {
      double sent_ms = now_ms;
      deliver(one, emission, now_ms, sent_ms, random, ledger);
      if (!emission.finished) continue;
      SequenceTotal known;
      known.tokens = emission.generated;
      if (one.said == Said::kAtTheEnd) {
        known.draft_tokens = emission.drafted;
        known.draft_tokens_accepted = emission.accepted;
      }
      ledger.end(emission.id, at_ms(now_ms + 1), Outcome::kOk, known);
    }
    ledger.advance_to(at_ms(now_ms));
  }
  ledger.finish();
  return engine.truth();
}

}  // namespace

TEST_CASE("the passes of a speculating engine are its own, declared or not", "[sim]") {
  for (const bool is_moe : {false, true}) {
    for (const double acceptance : {0.3, 0.7, 0.95}) {
      for (const std::size_t batch : {std::size_t{1}, std::size_t{8}}) {
        for (const Frames frames : {Frames::kEachToken, Frames::kCounted, Frames::kUncounted}) {
          for (const Said said : {Said::kSetting, Said::kAtTheEnd, Said::kNever}) {
            for (unsigned seed = 1; seed <= 3; ++seed) {
              const Case one{is_moe, acceptance, batch, frames, said, seed};
              INFO("moe " << is_moe << " acceptance " << acceptance << " batch " << batch << " frames "
                          << static_cast<int>(frames) << " said " << static_cast<int>(said) << " seed " << seed);
              DecodeLedger::Options options;
              options.speculates = said == Said::kSetting;
              LedgerLog log;
              DecodeLedger ledger(options, log);
              const simulator::EngineOptions engine = engine_options(one);
              ledger.set_geometry(std::make_shared<Geometry>(engine.geometry));
              const simulator::Truth truth = run(one, ledger);
              CHECK(ledger.speculates());
              CHECK(log.passes == Approx(static_cast<double>(truth.decode_passes)).epsilon(0.02));
              CHECK(log.output_tokens == static_cast<double>(truth.output_tokens));
              // Of the experts only the drafts that were accepted are seen, unless the server counts them.
              if (is_moe && said != Said::kAtTheEnd) continue;
              const double mbu = log.bytes / (log.busy_seconds * engine.bandwidth);
              CHECK(mbu == Approx(truth.bytes() / (truth.busy_seconds * engine.bandwidth)).margin(0.02));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("an engine that does not speculate is not taken for one", "[sim]") {
  for (const std::size_t batch : {std::size_t{1}, std::size_t{4}, std::size_t{16}}) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
      INFO("batch " << batch << " seed " << seed);
      Case one{seed % 2 == 0, 0, batch, Frames::kEachToken, Said::kNever, seed};
      LedgerLog log;
      DecodeLedger ledger(DecodeLedger::Options{}, log);
      const simulator::Truth truth = run(one, ledger);
      CHECK_FALSE(ledger.speculates());
      CHECK(log.passes == Approx(static_cast<double>(truth.decode_passes)).epsilon(0.01));
    }
  }
}
