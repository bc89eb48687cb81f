// Engines part of whose work does not show when it is done: MBU within two points of the truth (issue 4).

#include "metrics/decode_ledger.h"

#include "tests/simulator/engine.h"
#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

#include <algorithm>
#include <map>
#include <random>

using namespace rooflined;
using namespace rooflined::test;

namespace {

enum class Trouble { kNone, kNotStreamed, kPreempted, kReadSlowly, kMergedByNagle };

struct Load {
  Trouble trouble = Trouble::kNone;
  bool is_moe = false;
  std::size_t batch = 8;
  double pause_ms = 0;  // mean time between requests; 0: all at once
  unsigned seed = 1;
};

simulator::EngineOptions engine_options(const Load& load) {
  simulator::EngineOptions options;
  options.geometry.dense_bytes = 1.5e9;
  options.geometry.kv_groups = {{28, 1024, 0}};
  if (load.is_moe) options.geometry.expert_groups = {{48, 128, 8, 0.5e6}};
  options.bandwidth = 100e9;
  options.efficiency = 0.6;
  options.batch_max = load.batch;
  options.prefill_tokens_per_second = 20'000;
  options.seed = load.seed;
  return options;
}

// What lies between the engine and the tap for one sequence.
struct Client {
  bool streamed = true;
  bool slow = false;
  int behind = 0;         // tokens generated and not sent
  double read_at = 0;     // when it next reads, ms
  double sent_at = -1e9;  // its last segment, ms
  bool window_closed = false;
};

class Wire {
 public:
  Wire(const Load& load, DecodeLedger& ledger) : load_(load), ledger_(ledger) {}

  void begin(simulator::SequenceId id, double now_ms, double prompt, Client client) {
    clients_[id] = client;
    ledger_.request(id, at_ms(now_ms), client.streamed);
    ledger_.begin(id, id, at_ms(now_ms), prompt, true);
  }

  void bear(const simulator::Emission& emission, double now_ms, double step_ms) {
    Client& client = clients_[emission.id];
    if (client.streamed) {
      ++client.behind;
      if (client.slow) {
        read_slowly(emission.id, client, now_ms, step_ms);
      } else if (load_.trouble != Trouble::kMergedByNagle || now_ms >= client.sent_at + 40 || emission.finished) {
        send(emission.id, client, now_ms, client.behind);
      }
    }
    if (!emission.finished) return;
    double end_ms = now_ms;
    while (client.streamed && client.behind > 0) {  // the rest, as the client reads it
      end_ms = std::max(end_ms, client.read_at);
      read_slowly(emission.id, client, end_ms, step_ms);
    }
    ledger_.end(emission.id, at_ms(end_ms + 0.5), Outcome::kOk,
                {.tokens = emission.generated, .finished_at = at_ms(end_ms + 0.4)});
  }

 private:
  void send(simulator::SequenceId id, Client& client, double now_ms, int tokens) {
    ledger_.tokens(id, at_ms(now_ms), static_cast<std::uint32_t>(tokens), static_cast<std::uint32_t>(tokens),
                   TokenSource::kEstimated);
    client.behind -= tokens;
    client.sent_at = now_ms;
  }

  // Half as fast as the engine: the buffers take what comes until they are full; then its window is closed, and opens
  // when sixteen tokens have been read.
  void read_slowly(simulator::SequenceId id, Client& client, double now_ms, double step_ms) {
    constexpr int kBuffered = 40;
    if (!client.window_closed) {
      send(id, client, now_ms, client.behind);
      if (++unread_[id] < 2 * kBuffered) return;
      client.window_closed = true;
      client.read_at = now_ms + 32 * step_ms;
      ledger_.client_window(id, at_ms(now_ms + 0.1), true);
      return;
    }
    if (now_ms < client.read_at) return;
    ledger_.client_window(id, at_ms(now_ms), false);
    send(id, client, now_ms + 0.1, std::min(client.behind, 16));
    ledger_.client_window(id, at_ms(now_ms + 0.2), true);
    client.read_at = now_ms + 32 * step_ms;
  }

  Load load_;
  DecodeLedger& ledger_;
  std::map<simulator::SequenceId, Client> clients_;
  std::map<simulator::SequenceId, int> unread_;
};

simulator::Truth run(const Load& load, DecodeLedger& ledger) {
  std::mt19937 random(load.seed);
  std::uniform_int_distribution<std::uint64_t> length(50, 600);
  std::uniform_int_distribution<std::uint64_t> prompt(10, 400);
  std::uniform_real_distribution<double> chance(0, 1);
  simulator::Engine engine(engine_options(load));
  Wire wire(load, ledger);
  std::map<simulator::SequenceId, std::uint64_t> preempt_at;
  const simulator::SequenceId requests = 20 + 6 * load.batch;
  double now_ms = 1000;
  double next_ms = now_ms;
  simulator::SequenceId next = 1;
  while (next <= requests || !engine.idle()) {
    if (engine.idle()) now_ms = std::max(now_ms, next_ms);
    while (next <= requests && next_ms <= now_ms) {
      const std::uint64_t tokens = prompt(random);
      const std::uint64_t output = length(random);
      engine.submit({next, tokens, output});
      Client client;
      const double draw = chance(random);
      client.streamed = load.trouble != Trouble::kNotStreamed || draw >= 0.3;
      client.slow = load.trouble == Trouble::kReadSlowly && draw < 0.1;
      if (load.trouble == Trouble::kPreempted && draw < 0.1) preempt_at[next] = output / 2;
      wire.begin(next++, next_ms, static_cast<double>(tokens), client);
      if (load.pause_ms > 0) next_ms += std::exponential_distribution<double>(1 / load.pause_ms)(random);
    }
    const simulator::Step& step = engine.step();
    now_ms += step.seconds * 1e3;
    std::vector<simulator::SequenceId> preempted;
    for (const simulator::Emission& emission : step.emissions) {
      wire.bear(emission, now_ms, step.seconds * 1e3);
      const auto due = preempt_at.find(emission.id);
      if (due == preempt_at.end() || emission.generated < due->second || emission.finished) continue;
      preempted.push_back(emission.id);
      preempt_at.erase(due);
    }
    for (const simulator::SequenceId id : preempted) engine.preempt(id);
    ledger.advance_to(at_ms(now_ms));
  }
  ledger.finish();
  return engine.truth();
}

}  // namespace

TEST_CASE("MBU is within two points of the truth when part of the work is hidden", "[sim]") {
  double worst = 0;
  for (const Trouble trouble :
       {Trouble::kNone, Trouble::kNotStreamed, Trouble::kPreempted, Trouble::kReadSlowly, Trouble::kMergedByNagle}) {
    for (const bool is_moe : {false, true}) {
      for (const std::size_t batch : {std::size_t{2}, std::size_t{8}, std::size_t{16}}) {
        for (const double pause_ms : {0.0, 1500.0}) {
          for (unsigned seed = 1; seed <= 3; ++seed) {
            const Load load{trouble, is_moe, batch, pause_ms, seed};
            LedgerLog log;
            DecodeLedger ledger(DecodeLedger::Options{}, log);
            const simulator::EngineOptions engine = engine_options(load);
            ledger.set_geometry(std::make_shared<Geometry>(engine.geometry));
            const simulator::Truth truth = run(load, ledger);
            const double mbu = log.bytes / (log.busy_seconds * engine.bandwidth);
            const double truth_mbu = truth.bytes() / (truth.busy_seconds * engine.bandwidth);
            INFO("trouble " << static_cast<int>(trouble) << " moe " << is_moe << " batch " << batch << " pause "
                            << pause_ms << " seed " << seed << " passes " << log.passes << " of " << truth.decode_passes
                            << ", busy " << log.busy_seconds << " of " << truth.busy_seconds);
            CHECK(mbu == Approx(truth_mbu).margin(0.02));
            CHECK_FALSE(ledger.speculates());
            CHECK(log.output_tokens == static_cast<double>(truth.output_tokens));
            worst = std::max(worst, std::abs(mbu - truth_mbu));
          }
        }
      }
    }
  }
  CAPTURE(worst);
  CHECK(worst < 0.02);
}
