#include "metrics/speculation_evidence.h"

#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace rooflined;
using Verdict = SpeculationEvidence::Verdict;

TEST_CASE("intervals that take as long whatever they yield are speculation") {
  SpeculationEvidence evidence;
  SpeculationEvidence::Stream stream;
  for (int i = 0; i < 12; ++i) evidence.add(stream, 1 + i % 4, 0.1);
  CHECK(evidence.verdict() == Verdict::kUndecided);  // too few yet
  for (int i = 0; i < 12; ++i) evidence.add(stream, 1 + i % 4, 0.1);
  CHECK(evidence.verdict() == Verdict::kSpeculates);
}

TEST_CASE("intervals that take as long as their tokens are merged frames") {
  SpeculationEvidence evidence;
  SpeculationEvidence::Stream stream;
  for (int i = 0; i < 24; ++i) evidence.add(stream, 1 + i % 4, 0.02 * (1 + i % 4));
  CHECK(evidence.verdict() == Verdict::kMerges);
}

TEST_CASE("streams of different pace are not taken for a slope") {
  // One stream has one token each 10 ms, the other four each 40 ms: no stream varies in k, so nothing is known.
  SpeculationEvidence evidence;
  SpeculationEvidence::Stream slow;
  SpeculationEvidence::Stream fast;
  for (int i = 0; i < 1000; ++i) {
    evidence.add(slow, 4, 0.04);
    evidence.add(fast, 1, 0.01);
  }
  CHECK(evidence.verdict() == Verdict::kUndecided);
}

TEST_CASE("one token an interval tells nothing, and neither does an interval without a length") {
  SpeculationEvidence evidence;
  SpeculationEvidence::Stream stream;
  for (int i = 0; i < 1000; ++i) {
    evidence.add(stream, 1, 0.01 + 0.001 * (i % 7));
    evidence.add(stream, 3, 0);
  }
  CHECK(evidence.verdict() == Verdict::kUndecided);
}

TEST_CASE("noise delays the verdict and does not turn it") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    for (const bool speculates : {false, true}) {
      std::mt19937 random(seed);
      std::normal_distribution<double> noise(0, 0.5);  // a factor of 1.6 up or down
      SpeculationEvidence evidence;
      SpeculationEvidence::Stream stream;
      Verdict verdict = Verdict::kUndecided;
      for (int i = 0; i < 4000 && verdict == Verdict::kUndecided; ++i) {
        const double tokens = 1.0 + static_cast<double>(random() % 4);
        evidence.add(stream, tokens, 0.03 * (speculates ? 1 : tokens) * std::exp(noise(random)));
        verdict = evidence.verdict();
      }
      CHECK(verdict == (speculates ? Verdict::kSpeculates : Verdict::kMerges));
    }
  }
}

namespace {

// What a stream of `tokens` looks like in frames without counts: `next` yields the tokens of each frame.
struct Uncounted {
  double tokens_max;
  double pass_seconds;
  bool speculates;
  double noise;  // of each pass, as a factor's logarithm
};

template <typename Next>
void add_streams(SpeculationEvidence& evidence, int streams, const Uncounted& how, std::mt19937& random, Next next) {
  std::normal_distribution<double> noise(0, how.noise);
  for (int i = 0; i < streams; ++i) {
    SpeculationEvidence::Stream stream;
    double tokens = 1;
    double frames = 1;
    const double total = how.tokens_max / 2 + static_cast<double>(random() % 1000) / 1000 * how.tokens_max / 2;
    while (tokens < total) {
      const double borne = std::min<double>(next(random), std::ceil(total - tokens));
      const double passes = how.speculates ? 1 : borne;
      evidence.add_length(stream, passes * how.pass_seconds * std::exp(noise(random) / std::sqrt(passes)));
      tokens += borne;
      frames += 1;
    }
    evidence.add_total(stream, tokens, frames);
  }
}

double drafts_of_four(std::mt19937& random, double acceptance) {
  double tokens = 1;
  while (tokens < 5 && std::uniform_real_distribution<double>(0, 1)(random) < acceptance) ++tokens;
  return tokens;
}

}  // namespace

TEST_CASE("without counts: fewer frames than tokens at an even pace are speculation") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    for (const double acceptance : {0.2, 0.3, 0.5, 0.7, 0.95}) {
      INFO("seed " << seed << " acceptance " << acceptance);
      std::mt19937 random(seed);
      SpeculationEvidence evidence;
      const Uncounted how{400, 0.02, true, 0.1};
      const auto next = [&](std::mt19937& source) { return drafts_of_four(source, acceptance); };
      add_streams(evidence, 3, how, random, next);
      CHECK(evidence.verdict() == Verdict::kUndecided);  // too few yet
      add_streams(evidence, 20, how, random, next);
      CHECK(evidence.verdict() == Verdict::kSpeculates);
    }
  }
}

TEST_CASE("without counts: a token each, each few, merged or held back is not speculation") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Uncounted how{400, 0.02, false, 0.1};
    const Uncounted at_interval{400, 0.02, true, 0.1};  // as even as speculation
    SpeculationEvidence evidence;
    add_streams(evidence, 100, how, random, [](std::mt19937&) { return 1.0; });
    CHECK(evidence.verdict() == Verdict::kUndecided);
    for (const double step : {2.0, 3.0, 4.0, 8.0}) {
      INFO("step " << step);
      SpeculationEvidence each_few;
      add_streams(each_few, 100, at_interval, random, [&](std::mt19937&) { return step; });
      CHECK(each_few.verdict() == Verdict::kUndecided);
    }
    for (const unsigned merged : {2U, 3U, 4U, 8U}) {
      for (const double share : {0.05, 0.2, 0.5, 1.0}) {  // of the frames that wait for others
        INFO("merged " << merged << " share " << share);
        SpeculationEvidence waiting;
        add_streams(waiting, 100, how, random, [&](std::mt19937& source) {
          const bool waits = std::uniform_real_distribution<double>(0, 1)(source) < share;
          return waits ? 1.0 + static_cast<double>(source() % merged) : 1.0;
        });
        CHECK(waiting.verdict() != Verdict::kSpeculates);
      }
    }
  }
}

TEST_CASE("without counts: thoughts that are counted and not sent, and streams too short, tell nothing") {
  SpeculationEvidence evidence;
  for (int i = 0; i < 100; ++i) {
    SpeculationEvidence::Stream stream;
    for (int frame = 0; frame < 40; ++frame) evidence.add_length(stream, 0.02);
    evidence.add_total(stream, 1200 + 7 * i, 41);
    SpeculationEvidence::Stream brief;
    for (int frame = 0; frame < 8; ++frame) evidence.add_length(brief, 0.02);
    evidence.add_total(brief, 21, 9);
  }
  CHECK(evidence.verdict() == Verdict::kUndecided);
}
