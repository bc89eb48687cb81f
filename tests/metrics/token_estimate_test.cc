#include "metrics/token_estimate.h"

#include "tests/support/catch.h"

using namespace rooflined;

TEST_CASE("the first text decides alone, the first sixteen by their mean, then the last ones") {
  CharacterRatio ratio;
  CHECK(ratio.tokens(400) == Approx(100));
  ratio.learn(300, 100);
  CHECK(ratio.tokens(300) == Approx(100));
  ratio.learn(100, 100);
  CHECK(ratio.tokens(200) == Approx(100));
  for (int i = 0; i < 14; ++i) ratio.learn(200, 100);
  CHECK(ratio.tokens(200) == Approx(100));
  ratio.learn(1000, 100);  // a sixteenth of the way from 2 to 10
  CHECK(ratio.tokens(250) == Approx(100));
}

TEST_CASE("where each frame was a token, frames count") {
  AnswerEstimate estimate;
  CHECK_FALSE(estimate.error());
  for (int i = 0; i < 10; ++i) estimate.learn(100, 350 + 20 * (i % 3), 101);
  CHECK_FALSE(estimate.by_text(50, 600));
  CHECK(*estimate.error() == Approx(1.0 / 101));
}

TEST_CASE("where frames carried several tokens, the text counts") {
  AnswerEstimate estimate;
  for (int i = 0; i < 10; ++i) estimate.learn(25 + 5 * (i % 3), 400, 100);
  CHECK(estimate.by_text(10, 120));
  CHECK(estimate.tokens_of_text(120) == Approx(30));
  CHECK(*estimate.error() == Approx(0).margin(1e-9));
}

TEST_CASE("before any total, only frames longer than any token speak for the text") {
  const AnswerEstimate estimate;
  CHECK_FALSE(estimate.by_text(10, 60));
  CHECK(estimate.by_text(10, 200));
  CHECK(estimate.tokens_of_text(200) == Approx(50));
  CHECK_FALSE(estimate.by_text(10, 0));
}

TEST_CASE("what was learned goes on where it stopped") {
  AnswerEstimate whole;
  AnswerEstimate first;
  for (int i = 0; i < 5; ++i) {
    whole.learn(25 + 5 * (i % 3), 400, 100);
    first.learn(25 + 5 * (i % 3), 400, 100);
  }
  AnswerEstimate second(first.state());
  for (int i = 0; i < 5; ++i) {
    whole.learn(30, 300 + 20 * i, 100);
    second.learn(30, 300 + 20 * i, 100);
  }
  CHECK(second.by_text(10, 120));
  CHECK(second.tokens_of_text(120) == whole.tokens_of_text(120));
  CHECK(*second.error() == *whole.error());
}
