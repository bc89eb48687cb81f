#include "metrics/engine_books.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

using namespace rooflined;
using rooflined::test::at_ms;

namespace {

struct Bench {
  EngineBooks books{EngineBooks::Options{}, at_ms(0), nullptr};

  void begin(ExchangeId id, double ms, std::uint64_t characters = 400) {
    ExchangeBegin begin;
    begin.exchange = id;
    begin.at = at_ms(ms);
    begin.streamed = true;
    begin.prompt_characters = characters;
    books.begin(begin);
  }
  void stream(ExchangeId id, double from_ms, int count, double step_ms, std::uint32_t choice = 0) {
    for (int i = 0; i < count; ++i) {
      books.tokens(TokenEvent{id, choice, at_ms(from_ms + i * step_ms), 1, 1, TokenSource::kEstimated});
    }
  }
  void end(ExchangeId id, double ms, Outcome outcome, std::vector<SequenceTotal> totals) {
    ExchangeEnd end;
    end.exchange = id;
    end.at = at_ms(ms);
    end.outcome = outcome;
    end.sequences = totals;
    books.end(end);
  }
};

std::shared_ptr<const Geometry> geometry() {
  Geometry geometry;
  geometry.dense_bytes = 1e9;
  geometry.kv_groups = {{1, 1000, 0}};
  return std::make_shared<Geometry>(geometry);
}

}  // namespace

TEST_CASE("one exchange through the books") {
  Bench bench;
  bench.books.set_geometry(geometry());
  bench.begin(1, 0);
  bench.stream(1, 1000, 101, 20);
  bench.books.prompt_tokens(1, 100, at_ms(3001));
  bench.end(1, 3001, Outcome::kOk, {{0, 101, at_ms(3000)}});
  bench.books.advance_to(at_ms(4500));

  const TargetSnapshot snapshot = bench.books.snapshot(100e9);
  CHECK(snapshot.output_tokens == 101);
  CHECK(snapshot.prompt_tokens == 100);
  CHECK(snapshot.decode_passes == Approx(100));
  CHECK(snapshot.decode_busy_seconds == Approx(2));
  CHECK(snapshot.decode_bytes_dense == Approx(100e9));
  CHECK(snapshot.decode_bytes_kv == Approx(1000.0 * (101 + 200) / 2 * 100));
  CHECK(snapshot.requests[0] == 1);
  CHECK(snapshot.tokens_by_source[static_cast<std::size_t>(TokenSource::kExactFinal)] == 101);
  CHECK(snapshot.time_to_first_token.count == 1);
  CHECK(snapshot.time_to_first_token.sum == Approx(1));
  CHECK(snapshot.inter_token_latency.count == 100);
  CHECK(snapshot.active_sequences == 0);
  CHECK(snapshot.exchanges_in_flight == 0);
  CHECK(snapshot.caveats.empty());

  REQUIRE(snapshot.windows.size() == 2);
  const WindowSnapshot& window = snapshot.windows[0];
  CHECK(window.window == "1m");
  CHECK(window.tokens_per_second == Approx(101.0 / 4));
  REQUIRE(window.mbu_ratio);
  CHECK(*window.mbu_ratio == Approx((100e9 + snapshot.decode_bytes_kv) / (2 * 100e9)));
  REQUIRE(window.decode_bandwidth_ratio);
  CHECK(*window.decode_bandwidth_ratio == Approx(*window.mbu_ratio * 2 / 4));
  CHECK(*window.batch_size == Approx(1));
  CHECK(*window.context_tokens == Approx(150.5));
  REQUIRE(window.itl_seconds);
  CHECK(window.itl_seconds->mean == Approx(0.02));
  CHECK(window.itl_seconds->p99 == Approx(0.02).epsilon(0.011));
  // MBU is the rate over its bound.
  CHECK(50 / *window.tokens_per_second_bound == Approx(*window.mbu_ratio));
}

TEST_CASE("idle: rates are 0, what needs decode is absent") {
  Bench bench;
  bench.books.set_geometry(geometry());
  bench.books.advance_to(at_ms(10'000));
  const TargetSnapshot snapshot = bench.books.snapshot(100e9);
  REQUIRE(snapshot.windows.size() == 2);
  CHECK(snapshot.windows[0].tokens_per_second == 0);
  CHECK(snapshot.windows[0].decode_bandwidth_ratio == std::optional<double>(0.0));
  CHECK_FALSE(snapshot.windows[0].mbu_ratio);
  CHECK_FALSE(snapshot.windows[0].batch_size);
  CHECK_FALSE(snapshot.windows[0].itl_seconds);
}

TEST_CASE("a geometry that comes after decode does not make its bytes none") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 1000, 101, 20);
  bench.end(1, 3001, Outcome::kOk, {{0, 101, std::nullopt}});
  bench.books.advance_to(at_ms(4500));
  bench.books.set_geometry(geometry());
  const TargetSnapshot before = bench.books.snapshot(100e9);
  CHECK_FALSE(before.windows[0].decode_bytes_per_second);
  CHECK_FALSE(before.windows[0].decode_bandwidth_ratio);
  CHECK_FALSE(before.windows[0].mbu_ratio);

  bench.begin(2, 5000);
  bench.stream(2, 6000, 101, 20);
  bench.end(2, 8001, Outcome::kOk, {{0, 101, std::nullopt}});
  bench.books.advance_to(at_ms(9500));
  const TargetSnapshot half = bench.books.snapshot(100e9);
  CHECK_FALSE(half.windows[0].decode_bytes_per_second);
  CHECK(half.windows[0].mbu_ratio);  // of what was billed

  bench.books.advance_to(at_ms(65'000));  // the first stream has left the minute
  const TargetSnapshot after = bench.books.snapshot(100e9);
  REQUIRE(after.windows[0].decode_bytes_per_second);
  CHECK(*after.windows[0].decode_bytes_per_second == Approx((100e9 + after.decode_bytes_kv) / 60));
  CHECK_FALSE(after.windows[1].decode_bytes_per_second);
}

TEST_CASE("without a geometry there are no bytes and no MBU, and the rest is there") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 1000, 101, 20);
  bench.end(1, 3001, Outcome::kOk, {{0, 101, std::nullopt}});
  bench.books.advance_to(at_ms(4500));
  const TargetSnapshot snapshot = bench.books.snapshot(100e9);
  CHECK_FALSE(snapshot.windows[0].mbu_ratio);
  CHECK_FALSE(snapshot.windows[0].decode_bytes_per_second);
  CHECK(snapshot.windows[0].batch_size);
  CHECK_FALSE(snapshot.geometry);
}

TEST_CASE("a geometry that comes in the middle makes MBU from what it billed") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 1000, 51, 20);
  bench.books.advance_to(at_ms(2250));
  bench.books.set_geometry(geometry());
  bench.stream(1, 2020, 50, 20);
  bench.end(1, 3001, Outcome::kOk, {{0, 101, std::nullopt}});
  bench.books.advance_to(at_ms(4500));
  const TargetSnapshot snapshot = bench.books.snapshot(100e9);
  REQUIRE(snapshot.windows[0].mbu_ratio);
  CHECK(*snapshot.windows[0].mbu_ratio == Approx(0.5).epsilon(0.01));
}

TEST_CASE("aborts and errors are counted apart, and finished sums hold only what ended well") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 100, 11, 10);
  bench.end(1, 201, Outcome::kAborted, {{0, std::nullopt, std::nullopt}});
  bench.begin(2, 300);
  bench.end(2, 310, Outcome::kError, {});
  bench.begin(3, 400);
  bench.stream(3, 500, 6, 10);
  bench.books.prompt_tokens(3, 40, at_ms(550));
  bench.end(3, 551, Outcome::kOk, {{0, 6, std::nullopt}});
  bench.books.finish();
  const TargetSnapshot snapshot = bench.books.snapshot(std::nullopt);
  CHECK(snapshot.requests[0] == 1);
  CHECK(snapshot.requests[1] == 1);
  CHECK(snapshot.requests[2] == 1);
  CHECK(bench.books.finished().requests == 1);
  CHECK(bench.books.finished().output_tokens == 6);
  CHECK(bench.books.finished().prompt_tokens == 40);
  CHECK(bench.books.finished().sequence_seconds == Approx(0.05));
  CHECK(snapshot.output_tokens == 17);
  CHECK(snapshot.tokens_by_source[static_cast<std::size_t>(TokenSource::kEstimated)] == 11);
}

TEST_CASE("estimates and merged frames make caveats") {
  Bench bench;
  bench.begin(1, 0);
  for (int i = 0; i < 50; ++i) {
    bench.books.tokens(TokenEvent{1, 0, at_ms(1000 + i * 20), 2, 2, TokenSource::kEstimated});
  }
  bench.end(1, 2001, Outcome::kAborted, {{0, std::nullopt, std::nullopt}});
  bench.books.advance_to(at_ms(4500));
  const auto caveats = bench.books.snapshot(std::nullopt).caveats;
  CHECK(std::find(caveats.begin(), caveats.end(), "estimated_tokens") != caveats.end());
  CHECK(std::find(caveats.begin(), caveats.end(), "merged_frames") != caveats.end());
}

TEST_CASE("the characters of a token are learned from totals") {
  Bench bench;
  bench.books.set_geometry(geometry());
  for (ExchangeId id = 1; id <= 200; ++id) {
    const double start = static_cast<double>(id) * 1000;
    bench.begin(id, start, 1000);
    bench.books.prompt_tokens(id, 500, at_ms(start + 1));
    bench.end(id, start + 2, Outcome::kOk, {});
  }
  // Two characters a token by now: a prompt of 1,000 characters that never gets its total is taken for 500 tokens.
  bench.begin(1000, 300'000, 1000);
  bench.stream(1000, 300'100, 3, 10);
  bench.end(1000, 300'121, Outcome::kAborted, {});
  bench.books.finish();
  CHECK(bench.books.settled().context_sum == Approx(2 * 501.5).epsilon(0.01));
}

TEST_CASE("the first total decides the ratio, also for prompts in flight that never get theirs") {
  Bench bench;
  bench.begin(1, 0, 1000);
  bench.stream(1, 100, 3, 10);
  bench.begin(2, 200, 1000);
  bench.books.prompt_tokens(2, 500, at_ms(300));
  bench.end(2, 301, Outcome::kOk, {});
  bench.end(1, 400, Outcome::kAborted, {});
  bench.books.finish();
  CHECK(bench.books.settled().context_sum == Approx(2 * 501.5));
}

TEST_CASE("an answer without a total, whose frames carry several tokens, is counted by its text") {
  Bench bench;
  const auto answer = [&](ExchangeId id, double start, int frames) {
    bench.begin(id, start);
    for (int i = 0; i < frames; ++i) {
      TokenEvent event{id, 0, at_ms(start + 100 + i * 50), 1, 1, TokenSource::kEstimated};
      event.characters = 15;
      bench.books.tokens(event);
    }
  };
  // Three characters a token, five tokens a frame.
  for (ExchangeId id = 1; id <= 3; ++id) {
    answer(id, static_cast<double>(id) * 1000, 10);
    bench.end(id, static_cast<double>(id) * 1000 + 600, Outcome::kOk, {{0, 50, std::nullopt, 150}});
  }
  answer(4, 5000, 10);
  bench.end(4, 5600, Outcome::kOk, {{0, std::nullopt, std::nullopt, 150}});
  bench.books.advance_to(at_ms(7000));
  const TargetSnapshot snapshot = bench.books.snapshot(std::nullopt);
  CHECK(snapshot.output_tokens == 200);
  CHECK(snapshot.decode_passes == Approx(4 * 45).epsilon(0.03));
  CHECK(snapshot.tokens_by_source[static_cast<std::size_t>(TokenSource::kExactFinal)] == 150);
  CHECK(snapshot.tokens_by_source[static_cast<std::size_t>(TokenSource::kEstimated)] == 50);
  REQUIRE(snapshot.token_estimate_error);
  CHECK(*snapshot.token_estimate_error == Approx(0).margin(0.01));
  const auto& caveats = snapshot.caveats;
  CHECK(std::find(caveats.begin(), caveats.end(), "estimated_tokens") != caveats.end());
}

TEST_CASE("a client that does not read is told to the ledger") {
  Bench bench;
  bench.begin(1, 0);
  bench.stream(1, 100, 11, 10);
  bench.books.client_window(1, true, at_ms(201));
  bench.books.client_window(1, false, at_ms(400));
  bench.stream(1, 401, 1, 10);
  bench.end(1, 402, Outcome::kOk, {{0, 12, std::nullopt}});
  bench.books.finish();
  const TargetSnapshot snapshot = bench.books.snapshot(std::nullopt);
  CHECK(snapshot.decode_exits.at("client") == 1);
  CHECK(snapshot.decode_passes == Approx(10));
  CHECK(snapshot.output_tokens == 12);
}

TEST_CASE("a response cannot make the books keep more than their bound of sequences") {
  Bench bench;
  bench.begin(1, 0);
  for (std::uint32_t choice = 0; choice < 10'000; ++choice) bench.stream(1, 100, 1, 10, choice);
  bench.end(1, 201, Outcome::kAborted, {});
  bench.books.finish();
  const TargetSnapshot snapshot = bench.books.snapshot(std::nullopt);
  CHECK(snapshot.output_tokens == 256);
  CHECK(snapshot.decode_exits.at("limit") == 10'000 - 256);
}
