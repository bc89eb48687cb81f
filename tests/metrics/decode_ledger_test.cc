#include "metrics/decode_ledger.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using namespace rooflined::test;

namespace {

struct Bench {
  LedgerLog log;
  DecodeLedger ledger;

  explicit Bench(const DecodeLedger::Options& options = {}) : ledger(options, log) {}

  void begin(SequenceId sequence, double ms, double prompt = 0, bool whole = true) {
    ledger.begin(sequence, sequence, at_ms(ms), prompt, whole);
  }
  void token(SequenceId sequence, double ms, std::uint32_t count = 1) {
    ledger.tokens(sequence, at_ms(ms), count, 1, TokenSource::kEstimated);
  }
  void end(SequenceId sequence, double ms, std::optional<std::uint64_t> total = std::nullopt,
           std::optional<LineTime> finished_at = std::nullopt) {
    ledger.end(sequence, at_ms(ms), Outcome::kOk, {.tokens = total, .finished_at = finished_at});
  }
  // `count` tokens from `from_ms` on, one each `step_ms`.
  void stream(SequenceId sequence, double from_ms, int count, double step_ms) {
    for (int i = 0; i < count; ++i) token(sequence, from_ms + i * step_ms);
  }
};

Geometry dense_geometry(double weights, double kv_per_token) {
  Geometry geometry;
  geometry.dense_bytes = weights;
  geometry.kv_groups = {{1, kv_per_token, 0}};
  return geometry;
}

}  // namespace

TEST_CASE("one stream: a pass for each token after the first, busy from first to last") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 100, 11, 20);
  bench.end(1, 301, 11);
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 11);
  CHECK(bench.log.decode_tokens == 10);
  CHECK(bench.log.passes == Approx(10));
  CHECK(bench.log.busy_seconds == Approx(0.2));
  CHECK(bench.log.sequence_seconds == Approx(0.2));
  CHECK(bench.log.sources[TokenSource::kExactFinal] == 11);
  REQUIRE(bench.log.closed.size() == 1);
  CHECK(bench.log.closed[0].output_tokens == 11);
}

TEST_CASE("streams in step share their passes") {
  Bench bench;
  for (SequenceId sequence = 1; sequence <= 4; ++sequence) bench.begin(sequence, 0);
  for (int i = 0; i <= 50; ++i) {
    for (SequenceId sequence = 1; sequence <= 4; ++sequence) bench.token(sequence, 100 + i * 10);
  }
  for (SequenceId sequence = 1; sequence <= 4; ++sequence) bench.end(sequence, 601);
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(50));
  CHECK(bench.log.busy_seconds == Approx(0.5));
  CHECK(bench.log.sequence_seconds == Approx(2.0));
  CHECK(bench.log.decode_tokens == 200);
}

TEST_CASE("a sequence that closes late left decode at its last token event") {
  // In decode until closed would put B at 2 for the 400 ms that the server took to close.
  Bench bench;
  bench.begin(1, 0);
  bench.begin(2, 0);
  bench.stream(1, 100, 11, 10);
  bench.stream(2, 100, 51, 10);
  bench.end(1, 600);
  bench.end(2, 601);
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(50));
  CHECK(bench.log.busy_seconds == Approx(0.5));
  CHECK(bench.log.exits[DecodeExit::kOvertaken] == 1);
}

TEST_CASE("nothing settles above the last event of a sequence that is still in decode, for two seconds") {
  Bench bench;
  bench.begin(1, 0);
  bench.begin(2, 0);
  bench.token(1, 100);
  bench.token(2, 100);
  bench.token(2, 200);
  bench.ledger.advance_to(at_ms(1000));
  CHECK(bench.log.intervals.empty());
  bench.ledger.advance_to(at_ms(2460));
  REQUIRE(bench.log.intervals.size() == 1);
  CHECK(bench.log.intervals[0].batch == Approx(2));
}

TEST_CASE("a sequence overtaken leaves, and is billed by the pace of its overtaker when it comes back") {
  Bench bench;
  bench.begin(1, 0);
  bench.begin(2, 0);
  bench.token(1, 100);
  bench.stream(2, 100, 101, 10);
  bench.token(1, 1100);
  bench.end(1, 1101);
  bench.end(2, 1101);
  bench.ledger.finish();
  CHECK(bench.log.exits[DecodeExit::kOvertaken] == 1);
  // 99 passes of sequence 2 alone, and one that both share.
  CHECK(bench.log.passes == Approx(100));
  CHECK(bench.log.busy_seconds == Approx(1.0));
  CHECK(bench.log.sequence_seconds == Approx(1.01));
}

TEST_CASE("token events out of order by less than the buffer's age are put right") {
  Bench bench;
  bench.begin(1, 0);
  bench.begin(2, 0);
  bench.token(1, 100);
  bench.token(1, 120);
  bench.token(2, 110);  // came later than it was stamped
  bench.token(2, 130);
  bench.end(1, 140);
  bench.end(2, 140);
  bench.ledger.finish();
  CHECK(bench.log.late_inputs == 0);
  CHECK(bench.log.sequence_seconds == Approx(0.04));
  // Each has a time-averaged batch of 1.5 over its 20 ms.
  CHECK(bench.log.busy_seconds == Approx(2 * 0.02 / 1.5));
}

TEST_CASE("an event behind the buffer is billed at its edge and counted") {
  Bench bench;
  bench.begin(1, 0);
  bench.token(1, 100);
  bench.ledger.advance_to(at_ms(1000));
  bench.token(1, 500);
  bench.end(1, 1001);
  bench.ledger.finish();
  CHECK(bench.log.late_inputs == 1);
  CHECK(bench.log.sequence_seconds == Approx(0.65));
}

TEST_CASE("the finish frame has the time of a stop token that was never seen") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 100, 20, 50);
  bench.end(1, 1102, 21, at_ms(1100));
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 21);
  CHECK(bench.log.passes == Approx(20));
  CHECK(bench.log.sequence_seconds == Approx(1.0));
  CHECK(bench.log.corrections.empty());
}

TEST_CASE("a late total scales passes and bytes, and leaves the time alone") {
  Bench bench;
  bench.ledger.set_geometry(std::make_shared<Geometry>(dense_geometry(1000, 1)));
  bench.begin(1, 0, 10);
  bench.stream(1, 100, 11, 10);
  bench.end(1, 201, 31, at_ms(200));
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 31);
  CHECK(bench.log.decode_tokens == 30);
  CHECK(bench.log.passes == Approx(30));
  CHECK(bench.log.busy_seconds == Approx(0.1));
  CHECK(bench.log.sequence_seconds == Approx(0.1));
  CHECK(bench.log.sources[TokenSource::kExactFinal] == 31);
}

TEST_CASE("a total below the count is a negative correction") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 100, 11, 10);
  bench.end(1, 201, 9);
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 9);
  CHECK(bench.log.passes == Approx(8));
}

TEST_CASE("a total is not applied to a sequence that joined late, nor one far from what was seen and lost") {
  Bench bench;
  bench.begin(1, 0, 0, false);
  bench.stream(1, 100, 11, 10);
  bench.end(1, 201, 500);
  bench.begin(2, 300);
  bench.stream(2, 310, 11, 10);
  bench.ledger.loss(2, at_ms(411), 20);
  bench.end(2, 420, 500);
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 22);
  CHECK(bench.log.sources[TokenSource::kEstimated] == 22);
  CHECK(bench.log.exits[DecodeExit::kLoss] == 1);
}

TEST_CASE("context counts the prompt and what was generated before; a late prompt is made up for") {
  Bench early;
  early.ledger.set_geometry(std::make_shared<Geometry>(dense_geometry(1000, 3)));
  early.begin(1, 0, 50);
  early.stream(1, 100, 11, 10);
  early.end(1, 201, 11);
  early.ledger.finish();
  // Contexts 51 … 60.
  CHECK(early.log.context == Approx(555));
  CHECK(early.log.kv_bytes == Approx(3 * 555));

  Bench late;
  late.ledger.set_geometry(std::make_shared<Geometry>(dense_geometry(1000, 3)));
  late.begin(1, 0, 7);
  late.stream(1, 100, 11, 10);
  late.ledger.late_prompt(1, at_ms(201), 50);
  late.end(1, 201, 11);
  late.ledger.finish();
  CHECK(late.log.context == Approx(555));
  CHECK(late.log.kv_bytes == Approx(3 * 555));
}

TEST_CASE("a late prompt honours a window's cap") {
  Geometry geometry = dense_geometry(0, 0);
  geometry.kv_groups = {{2, 5, 54}};
  Bench bench;
  bench.ledger.set_geometry(std::make_shared<Geometry>(geometry));
  bench.begin(1, 0, 7);
  bench.stream(1, 100, 11, 10);
  bench.ledger.late_prompt(1, at_ms(201), 50);
  bench.end(1, 201, 11);
  bench.ledger.finish();
  CHECK(bench.log.kv_bytes == Approx(10.0 * (51 + 52 + 53 + 7 * 54)));
}

TEST_CASE("prefill overlap is the part of busy time in which a request waited for its first token") {
  Bench bench;
  bench.ledger.request(1, at_ms(0));
  bench.begin(1, 0);
  bench.stream(1, 100, 11, 10);
  bench.ledger.request(2, at_ms(150));
  bench.begin(2, 150);
  bench.token(2, 170);
  bench.end(2, 171);
  bench.end(1, 201);
  bench.ledger.finish();
  CHECK(bench.log.overlap_seconds == Approx(0.02));
}

TEST_CASE("replicas: the batch is per replica, busy time is replica-seconds") {
  DecodeLedger::Options options;
  options.replicas = 2;
  Bench bench(options);
  for (SequenceId sequence = 1; sequence <= 4; ++sequence) {
    bench.begin(sequence, 0);
    bench.stream(sequence, 100, 11, 10);
  }
  for (SequenceId sequence = 1; sequence <= 4; ++sequence) bench.end(sequence, 201);
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(20));
  CHECK(bench.log.busy_seconds == Approx(0.2));
}

TEST_CASE("two tokens at the same instant: the second has no time, and the batch of the interval before") {
  Bench bench;
  bench.begin(1, 0);
  bench.token(1, 100);
  bench.token(1, 110);
  bench.token(1, 110);
  bench.end(1, 111);
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(2));
  CHECK(bench.log.sequence_seconds == Approx(0.01));
}

TEST_CASE("MoE weights are taken at each token's own batch") {
  Geometry geometry;
  geometry.dense_bytes = 100;
  geometry.expert_groups = {{1, 8, 2, 10}};
  Bench bench;
  bench.ledger.set_geometry(std::make_shared<Geometry>(geometry));
  bench.begin(1, 0);
  bench.begin(2, 0);
  bench.stream(1, 100, 11, 10);
  bench.stream(2, 100, 11, 10);
  bench.end(1, 201);
  bench.end(2, 201);
  bench.ledger.finish();
  CHECK(bench.log.bytes == Approx(10 * (100 + 8 * (1 - 0.75 * 0.75) * 10)));
}

TEST_CASE("silence of half a minute ends a sequence's decode") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 100, 3, 10);
  bench.ledger.advance_to(at_ms(40'000));
  CHECK(bench.log.exits[DecodeExit::kSilence] == 1);
  CHECK(bench.ledger.sequences_in_decode() == 0);
  bench.token(1, 50'000);
  bench.end(1, 50'001);
  bench.ledger.finish();
  CHECK(bench.log.sequence_seconds == Approx(0.03));
}

TEST_CASE("steps that are settled are forgotten") {
  Bench bench;
  for (SequenceId sequence = 1; sequence <= 20'000; ++sequence) {
    const double start = static_cast<double>(sequence) * 5;
    bench.begin(sequence, start);
    bench.stream(sequence, start, 3, 1);
    bench.end(sequence, start + 3);
    bench.ledger.advance_to(at_ms(start));
  }
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(40'000));
}

TEST_CASE("the sources of the tokens add up to the tokens") {
  Bench bench;
  bench.begin(1, 0);
  for (int i = 0; i < 10; ++i) bench.ledger.tokens(1, at_ms(100 + i * 10), 2, 1, TokenSource::kExactLive);
  bench.end(1, 201);
  bench.begin(2, 0);
  bench.stream(2, 100, 11, 10);
  bench.end(2, 201, 13);
  bench.begin(3, 0);
  bench.stream(3, 100, 7, 10);
  bench.end(3, 201);
  bench.ledger.finish();
  CHECK(bench.log.sources[TokenSource::kExactLive] == 20);
  CHECK(bench.log.sources[TokenSource::kExactFinal] == 13);
  CHECK(bench.log.sources[TokenSource::kEstimated] == 7);
  CHECK(bench.log.output_tokens == 40);
}
