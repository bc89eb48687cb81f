#include "tests/simulator/engine.h"

#include "tests/support/catch.h"

#include <cmath>

namespace rooflined::simulator {
namespace {

// 1 GB of dense weights, 1,000 bytes of cache per token of context.
Geometry dense_geometry() {
  Geometry geometry;
  geometry.dense_bytes = 1e9;
  geometry.kv_groups.push_back({10, 100, 0});
  return geometry;
}

// 2 layers of 8 experts of 1 MB, 2 of them per token, beside 10 MB of dense weights.
Geometry moe_geometry() {
  Geometry geometry;
  geometry.dense_bytes = 10e6;
  geometry.expert_groups.push_back({2, 8, 2, 1e6});
  return geometry;
}

EngineOptions options_for(const Geometry& geometry) {
  EngineOptions options;
  options.geometry = geometry;
  options.bandwidth = 100e9;
  options.efficiency = 0.5;
  return options;
}

void submit(Engine& engine, std::size_t count, std::uint64_t prompt_tokens, std::uint64_t output_tokens) {
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(engine.submit({i + 1, prompt_tokens, output_tokens}));
  }
}

TEST_CASE("a decode step takes its bytes over bandwidth times efficiency") {
  const std::size_t batch = GENERATE(1, 4, 16);
  Engine engine(options_for(dense_geometry()));
  submit(engine, batch, 100, 4);
  CHECK(engine.step().seconds == 0);  // the prefill is free
  // The second token reads the prompt and the first token: 101, the third 102.
  CHECK(engine.step().seconds == Approx((1e9 + static_cast<double>(batch) * 101e3) / 50e9));
  CHECK(engine.step().seconds == Approx((1e9 + static_cast<double>(batch) * 102e3) / 50e9));
}

TEST_CASE("a mixture of experts reads the expected number of distinct ones") {
  const std::size_t batch = GENERATE(1, 4, 16);
  Engine engine(options_for(moe_geometry()));
  submit(engine, batch, 100, 4);
  engine.step();
  const double distinct = 8 * (1 - std::pow(0.75, static_cast<double>(batch)));
  CHECK(engine.step().seconds == Approx((10e6 + 2 * distinct * 1e6) / 50e9));
}

TEST_CASE("drawn experts are the expected number on average, and at least k") {
  EngineOptions options = options_for(moe_geometry());
  options.routing = Routing::kRandom;
  Engine engine(options);
  submit(engine, 4, 1, 20001);
  engine.step();
  for (int i = 0; i < 20000; ++i) {
    const double experts_before = engine.truth().expert_bytes;
    engine.step();
    const double drawn = (engine.truth().expert_bytes - experts_before) / 1e6;
    REQUIRE(drawn >= 4);
    REQUIRE(drawn <= 16);
  }
  // Standard error of the mean: about 0.01 experts.
  const double expected = 2 * 8 * (1 - std::pow(0.75, 4.0));
  CHECK(engine.truth().expert_bytes / 20000 / 1e6 == Approx(expected).margin(0.06));
}

TEST_CASE("skewed routing reads fewer experts than uniform routing, and no skew as many") {
  const auto mean = [](Routing routing, double skew) {
    EngineOptions options = options_for(moe_geometry());
    options.routing = routing;
    options.routing_skew = skew;
    Engine engine(options);
    submit(engine, 4, 1, 5001);
    while (!engine.idle()) engine.step();
    return engine.truth().expert_bytes / 5000 / 1e6;
  };
  const double uniform = mean(Routing::kRandom, 0);
  CHECK(mean(Routing::kSkewed, 0) == Approx(uniform).margin(0.1));
  CHECK(mean(Routing::kSkewed, 1) < uniform - 0.5);
  CHECK(mean(Routing::kSkewed, 3) < mean(Routing::kSkewed, 1));
}

TEST_CASE("a sequence in prefill is not in that step's batch, and joins with the next") {
  EngineOptions options = options_for(dense_geometry());
  options.prefill_tokens_per_second = 1000;
  options.overhead_seconds = 0.002;
  Engine engine(options);
  REQUIRE(engine.submit({1, 100, 10}));
  // Alone, its prefill step reads no weights for decode.
  const Step first = engine.step();
  CHECK(first.seconds == Approx(0.1 + 0.002));
  CHECK(first.decoding == 0);
  REQUIRE(first.emissions.size() == 1);
  CHECK(first.emissions[0].generated == 1);
  CHECK(first.emissions[0].prefill_seconds == Approx(0.102));
  CHECK(engine.truth().busy_seconds == 0);

  REQUIRE(engine.submit({2, 50, 10}));
  const Step second = engine.step();
  CHECK(second.decoding == 1);
  CHECK(second.prefilled == 1);
  CHECK(second.seconds == Approx((1e9 + 101e3) / 50e9 + 0.05 + 0.002));
  REQUIRE(second.emissions.size() == 2);

  const Step third = engine.step();
  CHECK(third.decoding == 2);
  CHECK(third.seconds == Approx((1e9 + 102e3 + 51e3) / 50e9 + 0.002));

  const Truth& truth = engine.truth();
  CHECK(truth.decode_passes == 2);
  CHECK(truth.prefill_steps == 2);
  CHECK(truth.busy_seconds == Approx(second.seconds + third.seconds));
  CHECK(truth.busy_prefill_seconds == Approx(0.05));
  CHECK(truth.busy_overhead_seconds == Approx(0.004));
  CHECK(truth.sequence_seconds == Approx(second.seconds + 2 * third.seconds));
  CHECK(truth.kv_bytes == Approx(101e3 + 102e3 + 51e3));
  CHECK(truth.output_tokens == 5);
  CHECK(truth.decode_tokens == 3);
  CHECK(truth.prompt_tokens == 150);
}

TEST_CASE("a long prompt is prefilled in chunks while others decode") {
  EngineOptions options = options_for(dense_geometry());
  options.prefill_tokens_per_second = 1000;
  options.prefill_chunk = 40;
  Engine engine(options);
  submit(engine, 1, 30, 10);
  CHECK(engine.step().seconds == Approx(0.03));
  REQUIRE(engine.submit({2, 100, 10}));
  for (const double chunk : {0.04, 0.04, 0.02}) {
    const double context = static_cast<double>(30 + engine.truth().output_tokens);
    const Step& step = engine.step();
    CHECK(step.decoding == 1);
    CHECK(step.seconds == Approx((1e9 + context * 1e3) / 50e9 + chunk));
  }
  CHECK(engine.truth().prefilled_tokens == 130);
  CHECK(engine.step().decoding == 2);
  CHECK(engine.truth().output_tokens == 7);
}

TEST_CASE("what is cached of a prompt needs no prefill, and is read all the same") {
  EngineOptions options = options_for(dense_geometry());
  options.prefill_tokens_per_second = 1000;
  Engine engine(options);
  REQUIRE(engine.submit({1, 100, 2, 90}));
  CHECK(engine.step().seconds == Approx(0.01));
  engine.step();
  CHECK(engine.truth().kv_bytes == Approx(101e3));
  CHECK(engine.truth().prompt_tokens == 100);
}

TEST_CASE("a preempted sequence is prefilled again and ends with all its tokens") {
  EngineOptions options = options_for(dense_geometry());
  options.prefill_tokens_per_second = 1000;
  options.preemption = 0.2;
  Engine engine(options);
  submit(engine, 3, 10, 50);
  while (!engine.idle()) engine.step();
  const Truth& truth = engine.truth();
  CHECK(truth.preemptions > 0);
  CHECK(truth.output_tokens == 150);
  CHECK(truth.prompt_tokens == 30);
  CHECK(truth.prefilled_tokens > 30);
  CHECK(truth.decode_tokens == 147 - truth.preemptions);
}

TEST_CASE("jitter has the mean 1, the variation and the correlation asked for") {
  const double correlation = GENERATE(0.0, 0.8);
  StepJitter jitter({0.2, correlation, 0});
  std::mt19937_64 random(1);
  double sum = 0;
  double squares = 0;
  double products = 0;
  double before = 1;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double factor = jitter.factor(1, random);
    sum += factor;
    squares += (factor - 1) * (factor - 1);
    products += (factor - 1) * (before - 1);
    before = factor;
  }
  CHECK(sum / kDraws == Approx(1).margin(0.01));
  CHECK(std::sqrt(squares / kDraws) == Approx(0.2).margin(0.01));
  CHECK(products / squares == Approx(correlation).margin(0.03));
}

TEST_CASE("a draw of jitter holds for its period") {
  StepJitter jitter({0.2, 0, 10});
  std::mt19937_64 random(1);
  const double first = jitter.factor(4, random);
  CHECK(jitter.factor(4, random) == first);
  CHECK(jitter.factor(4, random) == first);
  CHECK(jitter.factor(4, random) != first);
}

TEST_CASE("cold caches make steps slower, less and less") {
  EngineOptions options = options_for(dense_geometry());
  Engine engine(options);
  submit(engine, 1, 1, 1000);
  engine.step();
  const double warm = engine.step().seconds;
  engine.warm_up(10 * warm);
  const double first = engine.step().seconds;
  CHECK(first == Approx(2 * warm).epsilon(0.01));
  double last = first;
  for (int i = 0; i < 20; ++i) last = engine.step().seconds;
  CHECK(last == Approx(warm).epsilon(0.01));
  CHECK(engine.truth().busy_capacity_bytes == Approx(engine.truth().busy_seconds * 100e9));
}

TEST_CASE("MBU is the efficiency where prefill and overhead are free") {
  Engine engine(options_for(dense_geometry()));
  submit(engine, 3, 10, 50);
  while (!engine.idle()) engine.step();
  const Truth& truth = engine.truth();
  CHECK(truth.bytes() / (truth.busy_seconds * 100e9) == Approx(0.5));
  CHECK(truth.output_tokens == 150);
  CHECK(truth.sequences_finished == 3);
}

TEST_CASE("no more than batch_max run, and a finished one makes room for the next") {
  EngineOptions options = options_for(dense_geometry());
  options.batch_max = 2;
  Engine engine(options);
  submit(engine, 3, 1, 2);
  CHECK(engine.step().prefilled == 2);
  CHECK(engine.waiting() == 1);
  CHECK(engine.step().decoding == 2);
  const Step& third = engine.step();
  CHECK(third.decoding == 0);
  CHECK(third.prefilled == 1);
}

TEST_CASE("a sequence of one token ends with its prefill") {
  Engine engine(options_for(dense_geometry()));
  submit(engine, 1, 5, 1);
  const Step& step = engine.step();
  REQUIRE(step.emissions.size() == 1);
  CHECK(step.emissions[0].finished);
  CHECK(engine.idle());
  CHECK(engine.truth().decode_passes == 0);
}

TEST_CASE("a cancelled sequence frees its place, waiting or running") {
  EngineOptions options = options_for(dense_geometry());
  options.batch_max = 1;
  Engine engine(options);
  submit(engine, 2, 1, 100);
  engine.step();
  engine.cancel(1);
  CHECK(engine.running() == 0);
  engine.cancel(2);
  engine.cancel(77);
  CHECK(engine.idle());
  CHECK(engine.truth().sequences_cancelled == 2);
}

TEST_CASE("the number of waiting sequences is bounded") {
  EngineOptions options = options_for(dense_geometry());
  options.sequences_waiting_max = 2;
  Engine engine(options);
  submit(engine, 2, 1, 1);
  CHECK_FALSE(engine.submit({3, 1, 1}));
}

TEST_CASE("a stall belongs to the sequences in decode") {
  Engine engine(options_for(dense_geometry()));
  submit(engine, 2, 1, 10);
  engine.step();
  engine.stall(1);  // nothing decodes in a prefill step
  CHECK(engine.truth().busy_seconds == 0);
  const double seconds = engine.step().seconds;
  engine.stall(1);
  CHECK(engine.truth().busy_seconds == Approx(seconds + 1));
  CHECK(engine.truth().sequence_seconds == Approx(2 * seconds + 2));
}

}  // namespace
}  // namespace rooflined::simulator
