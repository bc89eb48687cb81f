// What losing bytes of a stream does to its ledger.

#include "metrics/decode_ledger.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using namespace rooflined::test;

namespace {

struct Bench {
  LedgerLog log;
  DecodeLedger ledger{DecodeLedger::Options(), log};

  void begin(SequenceId sequence, double ms) { ledger.begin(sequence, sequence, at_ms(ms), 0, true); }
  void token(SequenceId sequence, double ms) { ledger.tokens(sequence, at_ms(ms), 1, 1, TokenSource::kEstimated); }
  void end(SequenceId sequence, double ms, std::optional<std::uint64_t> total = std::nullopt) {
    ledger.end(sequence, at_ms(ms), Outcome::kOk, {.tokens = total});
  }
  // `count` tokens from `from_ms` on, one each `step_ms`.
  void stream(SequenceId sequence, double from_ms, int count, double step_ms) {
    for (int i = 0; i < count; ++i) token(sequence, from_ms + i * step_ms);
  }
};

}  // namespace

TEST_CASE("the tokens in lost bytes are billed over the time of the gap, and put right by the total") {
  // 11 tokens until 200 ms, bytes of about three more lost, then one at 250 ms: it was five intervals of 10 ms.
  for (const bool with_total : {false, true}) {
    INFO(with_total);
    Bench bench;
    bench.begin(1, 0);
    bench.stream(1, 100, 11, 10);
    bench.ledger.loss(1, at_ms(201), 3.2);
    bench.token(1, 250);
    bench.token(1, 260);
    bench.end(1, 261, with_total ? std::optional<std::uint64_t>(17) : std::nullopt);
    bench.ledger.finish();
    const double tokens = with_total ? 17 : 16;
    CHECK(bench.log.output_tokens == tokens);
    CHECK(bench.log.passes == Approx(tokens - 1));
    CHECK(bench.log.sequence_seconds == Approx(0.16));
    CHECK(bench.log.busy_seconds == Approx(0.16));
    CHECK(bench.log.exits[DecodeExit::kLoss] == 1);
  }
}

TEST_CASE("a counter behind a gap has counted what was lost, and a hole holds no more than its time allows") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 100, 11, 10);
  bench.ledger.loss(1, at_ms(201), 3);
  bench.ledger.tokens(1, at_ms(240), 4, 1, TokenSource::kExactLive);
  CHECK(bench.log.late_inputs == 0);
  bench.ledger.loss(1, at_ms(241), 1e9);
  bench.token(1, 250);
  bench.end(1, 251);
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 11 + 4 + 1 + 4);
}

TEST_CASE("a stream that lost bytes stays in the batch of those that run beside it") {
  Bench bench;
  bench.begin(1, 0);
  bench.begin(2, 0);
  for (int i = 0; i <= 40; ++i) {
    if (i == 20) bench.ledger.loss(2, at_ms(100 + 10 * i), 1);
    bench.token(1, 100 + 10 * i);
    if (i != 20) bench.token(2, 100 + 10 * i);
    bench.ledger.advance_to(at_ms(100 + 10 * i));
  }
  bench.end(1, 501);
  bench.end(2, 501);
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 82);
  CHECK(bench.log.passes == Approx(40));
  CHECK(bench.log.busy_seconds == Approx(0.4));
}

TEST_CASE("a stream whose end was lost leaves the batch at its last event") {
  Bench bench;
  bench.begin(1, 0);
  bench.begin(2, 0);
  for (int i = 0; i <= 100; ++i) {
    bench.token(1, 100 + 10 * i);
    if (i <= 50) bench.token(2, 100 + 10 * i);
    if (i == 51) bench.ledger.loss_everywhere(at_ms(100 + 10 * i));
    bench.ledger.advance_to(at_ms(100 + 10 * i));
  }
  bench.end(1, 1101);
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(100));
  CHECK(bench.log.busy_seconds == Approx(1));
}
