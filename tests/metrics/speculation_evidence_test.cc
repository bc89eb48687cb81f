#include "metrics/speculation_evidence.h"

#include "tests/support/catch.h"

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
