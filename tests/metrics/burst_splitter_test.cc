#include "metrics/burst_splitter.h"

#include "tests/support/catch.h"

using namespace rooflined;
using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST_CASE("the threshold is half the 90th percentile of the first gaps where those inside bursts come near it") {
  BurstSplitter splitter;
  // Ten gaps: the ninth in order is 400 ms; inside bursts 30 ms on the average, and eight times that is more than half.
  for (const int ms : {400, 20, 30, 400, 40, 30, 500, 20, 40, 30}) splitter.learn(milliseconds(ms));
  CHECK_FALSE(splitter.head_known());
  CHECK(splitter.begins(milliseconds(201)));
  CHECK_FALSE(splitter.begins(milliseconds(200)));
}

TEST_CASE("where the gaps inside bursts are far shorter, a tenth of the 90th percentile is enough") {
  BurstSplitter splitter;
  for (const int ms : {400, 1, 2, 400, 1, 1, 500, 2, 1, 1}) splitter.learn(milliseconds(ms));
  CHECK(splitter.begins(milliseconds(41)));
  CHECK_FALSE(splitter.begins(milliseconds(40)));
}

TEST_CASE("passes that become three times as fast at once stay passes") {
  BurstSplitter splitter;
  for (int i = 0; i < 100; ++i) splitter.learn(milliseconds(480));
  for (int i = 0; i < 100; ++i) {
    CHECK(splitter.begins(milliseconds(160)));
    splitter.learn(milliseconds(160));
  }
}

TEST_CASE("of up to nine gaps the longest decides") {
  BurstSplitter splitter;
  splitter.learn(milliseconds(1));
  CHECK(splitter.begins(milliseconds(1)));
  splitter.learn(milliseconds(600));
  CHECK_FALSE(splitter.begins(milliseconds(1)));
  CHECK(splitter.begins(milliseconds(600)));
}

TEST_CASE("the head is known after sixteen gaps, and one stall among them does not hide the bursts") {
  BurstSplitter splitter;
  for (int i = 0; i < 15; ++i) splitter.learn(i % 3 == 0 ? Duration(milliseconds(100)) : Duration(microseconds(300)));
  CHECK_FALSE(splitter.head_known());
  splitter.learn(milliseconds(5000));
  CHECK(splitter.head_known());
  CHECK(splitter.begins(milliseconds(100)));
  CHECK_FALSE(splitter.begins(milliseconds(7)));
}

TEST_CASE("the threshold follows a change of pace") {
  BurstSplitter splitter;
  for (int i = 0; i < 200; ++i) splitter.learn(i % 4 == 0 ? Duration(milliseconds(50)) : Duration(microseconds(100)));
  CHECK(splitter.begins(milliseconds(50)));
  CHECK_FALSE(splitter.begins(milliseconds(4)));
  // The batch has grown, and passes take eight times as long; frames of one pass lie 20 ms apart.
  for (int i = 0; i < 200; ++i) splitter.learn(i % 4 == 0 ? milliseconds(400) : milliseconds(20));
  CHECK(splitter.begins(milliseconds(400)));
  CHECK_FALSE(splitter.begins(milliseconds(20)));
}
