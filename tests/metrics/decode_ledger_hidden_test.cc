#include "metrics/decode_ledger.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using namespace rooflined::test;

namespace {

// 100 bytes of dense weights, 8 experts of 10 bytes (2 a token), 1 byte of cache a token.
std::shared_ptr<const Geometry> moe() {
  Geometry geometry;
  geometry.dense_bytes = 100;
  geometry.expert_groups = {{1, 8, 2, 10}};
  geometry.kv_groups = {{1, 1, 0}};
  return std::make_shared<Geometry>(geometry);
}

double experts(double batch) {
  return moe()->weight_bytes(batch).experts;
}

struct Bench {
  LedgerLog log;
  DecodeLedger ledger{DecodeLedger::Options{}, log};

  Bench() { ledger.set_geometry(moe()); }

  void begin(SequenceId sequence, double ms, double prompt, bool streamed = true) {
    ledger.request(sequence, at_ms(ms), streamed);
    ledger.begin(sequence, sequence, at_ms(ms), prompt, true);
  }
  void token(SequenceId sequence, double ms, std::uint32_t count = 1) {
    ledger.tokens(sequence, at_ms(ms), count, count, TokenSource::kEstimated);
  }
  void stream(SequenceId sequence, double from_ms, int count, double step_ms) {
    for (int i = 0; i < count; ++i) token(sequence, from_ms + i * step_ms);
  }
  void end(SequenceId sequence, double ms, const SequenceTotal& known = {}) {
    ledger.end(sequence, at_ms(ms), Outcome::kOk, known);
  }
};

}  // namespace

TEST_CASE("a request that is not streamed is laid back beside the stream that ran: no passes, its cache and experts") {
  Bench bench;
  bench.begin(1, 0, 10);
  bench.begin(2, 0, 50, false);
  bench.stream(1, 100, 101, 10);  // to 1,100 ms
  bench.end(2, 900, {.tokens = 21});
  bench.end(1, 1101, {.tokens = 101});
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 122);
  CHECK(bench.log.decode_tokens == 120);
  CHECK(bench.log.passes == Approx(100));
  CHECK(bench.log.busy_seconds == Approx(1.0));
  CHECK(bench.log.sequence_seconds == Approx(1.0 + 20 * 0.01));
  // Its contexts: 51 … 70.
  CHECK(bench.log.kv_bytes == Approx(100 * 60.5 + 20 * 60.5));
  CHECK(bench.log.bytes == Approx(100 * (100 + experts(1)) + 20 * (experts(2) - experts(1)) + bench.log.kv_bytes));
  CHECK(bench.log.sources[TokenSource::kExactFinal] == 122);
  REQUIRE(bench.log.corrections.size() == 1);
  CHECK(bench.log.corrections[0].a == at_ms(700));
  CHECK(bench.log.corrections[0].b == at_ms(900));
  CHECK(bench.log.overlap_seconds == 0);  // its wait is not known to be prefill
}

TEST_CASE("where nobody decodes that is seen, a request that is not streamed has whole passes") {
  Bench bench;
  bench.begin(1, 0, 10);
  bench.stream(1, 100, 11, 10);
  bench.end(1, 201, {.tokens = 11});
  bench.begin(2, 1000, 50, false);
  bench.end(2, 2000, {.tokens = 21});
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(10 + 20));
  CHECK(bench.log.busy_seconds == Approx(0.1 + 0.2));
}

TEST_CASE("two requests that are not streamed share the passes of the time that they share") {
  Bench bench;
  bench.begin(1, 0, 10);
  bench.stream(1, 100, 11, 10);
  bench.end(1, 201, {.tokens = 11});
  bench.begin(2, 1000, 50, false);
  bench.begin(3, 1000, 50, false);
  bench.end(2, 2000, {.tokens = 21});  // 1,800 … 2,000
  bench.end(3, 2100, {.tokens = 21});  // 1,900 … 2,100
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(10 + 20 + 10));
  CHECK(bench.log.busy_seconds == Approx(0.1 + 0.3));
  CHECK(bench.log.decode_tokens == 50);
}

TEST_CASE("a request that is not streamed is never laid back before its last byte") {
  Bench bench;
  bench.begin(1, 0, 10);
  bench.stream(1, 100, 201, 10);
  bench.begin(2, 1500, 50, false);
  bench.end(2, 1600, {.tokens = 41});
  bench.end(1, 2101);
  bench.ledger.finish();
  REQUIRE(bench.log.corrections.size() == 1);
  CHECK(bench.log.corrections[0].a == at_ms(1500));
}

TEST_CASE("what an overtaken stream held back is laid back when it comes, and takes no time of the others") {
  Bench bench;
  bench.begin(1, 0, 10);
  bench.begin(2, 0, 10);
  bench.stream(1, 100, 11, 10);  // then it is silent
  bench.stream(2, 100, 101, 10);
  bench.token(1, 600, 40);  // all that it had held back, in one segment
  bench.end(1, 601, {.tokens = 51});
  bench.end(2, 1101);
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(100).epsilon(0.01));
  CHECK(bench.log.busy_seconds == Approx(1).epsilon(0.01));
  CHECK(bench.log.decode_tokens == 150);
  CHECK(bench.log.exits[DecodeExit::kOvertaken] == 1);
}

TEST_CASE("what only the total shows of the end of an overtaken stream is laid back from its finish frame") {
  Bench bench;
  bench.begin(1, 0, 10);
  bench.begin(2, 0, 10);
  bench.stream(1, 100, 11, 10);  // to 200 ms, then a tool call that is not streamed
  bench.stream(2, 100, 101, 10);
  bench.end(1, 601, {.tokens = 51, .finished_at = at_ms(600)});
  bench.end(2, 1101);
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 51 + 101);
  CHECK(bench.log.passes == Approx(100).epsilon(0.01));
  CHECK(bench.log.busy_seconds == Approx(1).epsilon(0.01));
}

TEST_CASE("a stream alone that holds back its end has passes until its finish frame") {
  Bench bench;
  bench.begin(1, 0, 10);
  bench.stream(1, 100, 11, 10);
  bench.end(1, 601, {.tokens = 51, .finished_at = at_ms(600)});
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(50));
  CHECK(bench.log.busy_seconds == Approx(0.5));
  CHECK(bench.log.corrections.empty());
}

TEST_CASE("a stream that holds back everything is laid back from its one token event") {
  Bench bench;
  bench.begin(1, 0, 10);
  bench.begin(2, 0, 10);
  bench.stream(2, 100, 101, 10);
  bench.token(1, 900, 41);
  bench.end(1, 901, {.tokens = 41});
  bench.end(2, 1101);
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 142);
  CHECK(bench.log.decode_tokens == 140);
  CHECK(bench.log.passes == Approx(100).epsilon(0.01));
  CHECK(bench.log.busy_seconds == Approx(1).epsilon(0.01));
}

TEST_CASE("while its client does not read, a sequence is not in the batch and bills its cache only") {
  // Dense, as its experts go with the passes of the others.
  Geometry dense;
  dense.dense_bytes = 100;
  dense.kv_groups = {{1, 1, 0}};
  Bench bench;
  bench.ledger.set_geometry(std::make_shared<Geometry>(dense));
  bench.begin(1, 0, 10);
  bench.begin(2, 0, 10);
  bench.stream(1, 100, 11, 10);  // contexts 11 … 20
  bench.stream(2, 100, 101, 10);
  bench.ledger.client_window(1, at_ms(201), true);
  bench.ledger.client_window(1, at_ms(800), false);
  bench.token(1, 800, 20);  // contexts 21 … 40
  bench.end(1, 801);
  bench.end(2, 1101);
  bench.ledger.finish();
  CHECK(bench.log.exits[DecodeExit::kClient] == 1);
  CHECK(bench.log.passes == Approx(100));
  CHECK(bench.log.busy_seconds == Approx(1));
  CHECK(bench.log.sequence_seconds == Approx(1.1 + 0.2));
  CHECK(bench.log.kv_bytes == Approx(100 * 60.5 + 30 * 25.5));
}

TEST_CASE("the only sequence goes on while its client does not read") {
  Bench bench;
  bench.begin(1, 0, 10);
  bench.stream(1, 100, 3, 10);
  bench.ledger.client_window(1, at_ms(121), true);
  bench.stream(1, 130, 20, 10);
  bench.end(1, 400);
  bench.ledger.finish();
  CHECK(bench.log.exits[DecodeExit::kClient] == 1);
  CHECK(bench.log.exits[DecodeExit::kOvertaken] == 0);
  CHECK(bench.log.output_tokens == 23);
}

TEST_CASE("drafts told of an answer that was not streamed: fewer passes, more experts, and the reads of who drafts") {
  Geometry draft;
  draft.dense_bytes = 10;
  draft.kv_groups = {{1, 1, 0}};
  // Five passes made 21 tokens: 15 of 20 drafts were accepted.
  const SequenceTotal told{.tokens = 21, .draft_tokens = 20, .draft_tokens_accepted = 15};

  SECTION("alone it has passes of its own") {
    Bench bench;
    bench.ledger.set_draft_geometry(std::make_shared<Geometry>(draft));
    bench.begin(2, 1000, 50, false);
    bench.end(2, 2000, told);
    bench.ledger.finish();
    CHECK(bench.log.output_tokens == 21);
    CHECK(bench.log.passes == Approx(5));
    CHECK(bench.ledger.speculates());
    // Its contexts: 51 … 70, a quarter of them; each draft read one, too.
    const double own = 5 * (100 + experts(1 + 20 / 5.0)) + 5 * 60.5;
    CHECK(bench.log.bytes == Approx(own + 20 * (10 + 60.5)));
  }
  SECTION("beside a stream it has none") {
    const auto bytes = [&](bool hidden) {
      Bench bench;
      bench.ledger.set_draft_geometry(std::make_shared<Geometry>(draft));
      bench.begin(1, 0, 10);
      bench.stream(1, 100, 101, 10);
      bench.end(1, 1101, {.tokens = 101, .draft_tokens = 100, .draft_tokens_accepted = 0});
      if (hidden) bench.begin(2, 0, 50, false);
      if (hidden) bench.end(2, 1050, told);
      bench.ledger.finish();
      CHECK(bench.log.passes == Approx(100));
      return bench.log.bytes;
    };
    const double own = 5 * (experts(2 * (1 + 20 / 5.0)) - experts(1 + 20 / 5.0)) + 5 * 60.5;
    CHECK(bytes(true) - bytes(false) == Approx(own + 20 * 60.5));
  }
  SECTION("more accepted than there were tokens is not believed") {
    Bench bench;
    bench.begin(2, 1000, 50, false);
    bench.end(2, 2000, {.tokens = 21, .draft_tokens = 40, .draft_tokens_accepted = 30});
    bench.ledger.finish();
    CHECK(bench.log.passes == Approx(20));
  }
}
