#include "daemon/build_word.h"

#include "tests/support/catch.h"
#include "tests/support/ledger_log.h"

#include <string>

using namespace rooflined;
using namespace rooflined::daemon;
using rooflined::test::at_ms;

namespace {

// One response a second.
struct Server {
  BuildWord word;
  ExchangeId next = 1;

  BuildWord::News answer(const std::string& told) {
    const ExchangeId response = next++;
    return word.take(response, told, at_ms(1000.0 * static_cast<double>(response)));
  }
};

using News = BuildWord::News;

}  // namespace

TEST_CASE("a word settles with the second response that tells it") {
  Server server;
  CHECK(server.answer("a") == News::kFirst);
  CHECK(server.word.settled().empty());
  CHECK(server.answer("a") == News::kNone);
  CHECK(server.word.settled() == "a");
  CHECK(server.word.settled_since() == at_ms(1000));
  CHECK(server.answer("b") == News::kOther);
  CHECK(server.word.settled() == "a");
  CHECK(server.answer("b") == News::kNone);
  CHECK(server.word.settled() == "b");
  CHECK(server.word.settled_since() == at_ms(3000));
}

TEST_CASE("a response that tells its word twice is one response") {
  BuildWord word;
  CHECK(word.take(1, "a", at_ms(0)) == News::kFirst);
  CHECK(word.take(1, "a", at_ms(1)) == News::kNone);
  CHECK(word.settled().empty());
}

TEST_CASE("words that are drawn are news twice and then no more, until one lasts") {
  Server server;
  CHECK(server.answer("a") == News::kFirst);
  CHECK(server.answer("b") == News::kOther);
  CHECK(server.answer("c") == News::kDrawn);
  for (int i = 0; i < 100; ++i) CHECK(server.answer(std::to_string(i)) == News::kNone);
  CHECK(server.word.settled().empty());
  CHECK(server.answer("v2") == News::kNone);
  CHECK(server.answer("v2") == News::kOther);
  CHECK(server.word.settled() == "v2");
  CHECK(server.answer("v2") == News::kNone);
}

TEST_CASE("a word that was relied on is not, once words are drawn") {
  Server server;
  for (const char* told : {"a", "a", "b", "c"}) server.answer(told);
  CHECK(server.word.settled() == "a");
  CHECK(server.answer("d") == News::kDrawn);
  CHECK(server.word.settled().empty());
}

TEST_CASE("one other response among many changes nothing") {
  Server server;
  for (const char* told : {"a", "a", "b", "a"}) server.answer(told);
  CHECK(server.word.settled() == "a");
  CHECK(server.word.settled_since() == at_ms(1000));
}
