#include "metrics/decode_ledger.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using namespace rooflined::test;

namespace {

// 100 bytes of dense weights, 8 experts of 10 bytes (2 a token), 3 bytes of cache a token.
std::shared_ptr<const Geometry> moe() {
  Geometry geometry;
  geometry.dense_bytes = 100;
  geometry.expert_groups = {{1, 8, 2, 10}};
  geometry.kv_groups = {{1, 3, 0}};
  return std::make_shared<Geometry>(geometry);
}

double experts(double tokens) {
  return moe()->weight_bytes(tokens).experts;
}

struct Bench {
  LedgerLog log;
  DecodeLedger ledger;

  explicit Bench(bool speculates) : ledger(options(speculates), log) { ledger.set_geometry(moe()); }

  static DecodeLedger::Options options(bool speculates) {
    DecodeLedger::Options options;
    options.speculates = speculates;
    return options;
  }
  void begin(SequenceId sequence, double ms, double prompt) {
    ledger.begin(sequence, sequence, at_ms(ms), prompt, true);
  }
  void token(SequenceId sequence, double ms, std::uint32_t count = 1, TokenSource source = TokenSource::kEstimated) {
    ledger.tokens(sequence, at_ms(ms), count, source == TokenSource::kExactLive ? 1 : count, source);
  }
  // `tokens` single frames, half a millisecond apart: what one pass of llama.cpp sends.
  void burst(SequenceId sequence, double ms, int tokens) {
    for (int i = 0; i < tokens; ++i) token(sequence, ms + 0.5 * i);
  }
  void end(SequenceId sequence, double ms, const SequenceTotal& known = {}) {
    ledger.end(sequence, at_ms(ms), Outcome::kOk, known);
  }
};

}  // namespace

TEST_CASE("declared: the frames of one pass are one interval, from the first burst of a stream on") {
  Bench bench(true);
  bench.begin(1, 0, 10);
  bench.token(1, 100);
  bench.burst(1, 200, 3);
  bench.burst(1, 300, 1);
  bench.burst(1, 400, 4);
  bench.end(1, 402);
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 9);
  CHECK(bench.log.passes == Approx(3));
  CHECK(bench.log.sequence_seconds == Approx(0.3015));
  REQUIRE(bench.log.intervals.size() == 3);
  CHECK(bench.log.intervals[0].a == at_ms(100));
  CHECK(bench.log.intervals[0].b == at_ms(201));
  CHECK(bench.log.intervals[0].tokens == 3);
  CHECK(bench.log.intervals[2].tokens == 4);
  // The cache is read once a pass, for the context before it; the experts by the burst's tokens.
  CHECK(bench.log.kv_bytes == Approx(3 * (11 + 14 + 15)));
  CHECK(bench.log.bytes == Approx(3 * 100 + experts(3) + experts(1) + experts(4) + bench.log.kv_bytes));
}

TEST_CASE("declared: an interval is not settled while its burst may grow") {
  Bench bench(true);
  bench.begin(1, 0, 10);
  bench.token(1, 100);
  for (int pass = 1; pass <= 20; ++pass) bench.burst(1, 100 + 100 * pass, 3);
  bench.token(1, 2200);
  bench.ledger.advance_to(at_ms(2450));
  // The frame at 2200 ms may have more to come; the bursts before it are whole.
  CHECK(bench.log.intervals.size() == 20);
  CHECK(bench.ledger.settled_until() == at_ms(2101));
}

TEST_CASE("declared: five frames of one pass do not overtake the other slot") {
  Bench bench(true);
  bench.begin(1, 0, 10);
  bench.begin(2, 0, 10);
  for (int pass = 0; pass < 20; ++pass) {
    bench.burst(1, 100 + 100 * pass, pass == 0 ? 1 : 6);
    bench.burst(2, 103 + 100 * pass, pass == 0 ? 1 : 2);
  }
  bench.end(1, 2010);
  bench.end(2, 2010);
  bench.ledger.finish();
  CHECK(bench.log.exits.empty());
  CHECK(bench.log.passes == Approx(19).epsilon(0.01));
}

TEST_CASE("the accepted drafts give the passes of a sequence, whatever its bursts looked like") {
  // A slow client got all frames in two segments: 10 and 11 tokens.
  Bench bench(false);
  bench.begin(1, 0, 10);
  bench.token(1, 100);
  bench.token(1, 600, 10);
  bench.token(1, 1100, 10);
  bench.end(1, 1100, {.tokens = 21, .draft_tokens = 20, .draft_tokens_accepted = 15});
  bench.ledger.finish();
  CHECK(bench.ledger.speculates());
  CHECK(bench.log.output_tokens == 21);
  CHECK(bench.log.passes == Approx(5));  // 21 − 1 − 15
  CHECK(bench.log.sequence_seconds == Approx(1));
  // Each pass verified its drafts and one token: 1 + 20/5. The cache: 5/20 of Σ KV(11 … 30).
  CHECK(bench.log.kv_bytes == Approx(3 * 20 * 20.5 * 5 / 20));
  CHECK(bench.log.bytes == Approx(5 * (100 + experts(5)) + bench.log.kv_bytes));
}

TEST_CASE("an engine that speculated once is remembered as one that does, and its running streams are put right") {
  Bench bench(false);
  bench.begin(1, 0, 10);
  bench.begin(2, 0, 10);
  for (int pass = 0; pass <= 10; ++pass) {
    bench.burst(1, 100 + 100 * pass, pass == 0 ? 1 : 2);
    bench.burst(2, 100 + 100 * pass, pass == 0 ? 1 : 3);
  }
  bench.end(1, 1103, {.tokens = 21, .draft_tokens = 12, .draft_tokens_accepted = 10});
  for (int pass = 11; pass <= 20; ++pass) bench.burst(2, 100 + 100 * pass, 3);
  bench.end(2, 2103);
  bench.ledger.finish();
  CHECK(bench.log.passes == Approx(20).epsilon(0.01));
  CHECK(bench.log.output_tokens == 21 + 61);
}

TEST_CASE("a late total of a speculating engine changes tokens, not passes") {
  Bench bench(true);
  bench.begin(1, 0, 10);
  bench.token(1, 100);
  for (int pass = 1; pass <= 10; ++pass) bench.burst(1, 100 + 100 * pass, 2);
  bench.end(1, 1101, {.tokens = 30});
  bench.ledger.finish();
  CHECK(bench.log.output_tokens == 30);
  CHECK(bench.log.passes == Approx(10));
}

TEST_CASE("undeclared, one frame of k tokens: found out, and what was billed before is put right") {
  Bench bench(false);
  bench.begin(1, 0, 10);
  bench.token(1, 100, 1, TokenSource::kExactLive);
  for (int pass = 1; pass <= 60; ++pass) {
    bench.token(1, 100 + 50 * pass + pass % 5, 1 + pass % 4, TokenSource::kExactLive);
  }
  bench.end(1, 3200);
  bench.ledger.finish();
  CHECK(bench.ledger.speculates());
  CHECK(bench.log.passes == Approx(60));
  CHECK(bench.log.output_tokens == 1 + 60 + 15 * (0 + 1 + 2 + 3));
}

TEST_CASE("undeclared, frames back to back: found out, also for streams that closed before") {
  Bench bench(false);
  double passes = 0;
  for (SequenceId sequence = 1; sequence <= 12; ++sequence) {
    const double start = static_cast<double>(sequence) * 1000;
    bench.begin(sequence, start, 10);
    bench.token(sequence, start + 100);
    for (int pass = 1; pass <= 6; ++pass) {
      bench.burst(sequence, start + 100 + 100 * pass + pass % 3, 1 + (pass + static_cast<int>(sequence)) % 4);
      passes += 1;
    }
    bench.end(sequence, start + 800);
  }
  bench.ledger.finish();
  CHECK(bench.ledger.speculates());
  CHECK(bench.log.passes == Approx(passes));
}

TEST_CASE("frames merged on the way are not speculation") {
  // Tokens each 10 ms, held by Nagle for up to 40 ms.
  Bench bench(false);
  bench.begin(1, 0, 10);
  bench.token(1, 100);
  double at = 100;
  for (int i = 0; i < 200; ++i) {
    const int tokens = 1 + (i * 7) % 4;
    at += 10 * tokens;
    bench.token(1, at, static_cast<std::uint32_t>(tokens));
  }
  bench.end(1, at + 1);
  bench.ledger.finish();
  CHECK_FALSE(bench.ledger.speculates());
  CHECK(bench.log.passes == Approx(bench.log.decode_tokens));
}

TEST_CASE("tokens guessed from the text of a frame are no evidence") {
  // Ten tokens in every frame, and their text is now longer, now shorter.
  Bench bench(false);
  bench.begin(1, 0, 10);
  for (int i = 0; i < 200; ++i) {
    bench.ledger.tokens(1, at_ms(100 + 100 * i), static_cast<std::uint32_t>(8 + i % 5), 1, TokenSource::kEstimated);
  }
  bench.end(1, 20'100);
  bench.ledger.finish();
  CHECK_FALSE(bench.ledger.speculates());
}

TEST_CASE("a prompt prefilled every few tokens is not speculation") {
  // Long gaps in more than a tenth of the cases, and the tokens between them close together: the tap saw why.
  Bench bench(false);
  bench.begin(1, 0, 10);
  bench.token(1, 100);
  double at = 100;
  SequenceId other = 2;
  for (int i = 0; i < 100; ++i) {
    at += 200;
    bench.begin(other, at - 150, 10);
    bench.token(1, at);
    bench.token(other, at + 0.05);
    bench.end(other++, at + 0.1);
    for (int k = 0; k < 1 + i % 5; ++k) bench.token(1, at += 10);
  }
  bench.end(1, at + 1);
  bench.ledger.finish();
  CHECK_FALSE(bench.ledger.speculates());
}

TEST_CASE("the reads of the draft model are billed by draft, and put right when their number is told") {
  // A draft step reads 10 bytes and one for each token of the context.
  Geometry draft;
  draft.dense_bytes = 10;
  draft.kv_groups = {{1, 1, 0}};
  const auto bytes = [&](bool with_draft, const SequenceTotal& known) {
    Bench bench(true);
    if (with_draft) bench.ledger.set_draft_geometry(std::make_shared<Geometry>(draft));
    bench.begin(1, 0, 10);
    bench.token(1, 100);
    bench.burst(1, 200, 3);
    bench.burst(1, 300, 1);
    bench.end(1, 302, known);
    bench.ledger.finish();
    return bench.log.bytes;
  };
  // Untold, as many as there were tokens: three at a context of 11, one at 14.
  CHECK(bytes(true, {}) - bytes(false, {}) == Approx(4 * 10 + 3 * 11 + 14));
  // Eight, at the mean context.
  const SequenceTotal told{.tokens = 5, .draft_tokens = 8, .draft_tokens_accepted = 2};
  CHECK(bytes(true, told) - bytes(false, told) == Approx(8 * (10 + 12.5)));
}
