#include "collectors/tap/json_condense.h"

#include "collectors/tap/dialect_table.h"
#include "tests/support/catch.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace rooflined::tap {
namespace {

std::string condensed(std::string_view text, std::size_t bytes_max = 1 << 20) {
  TextBudget budget;
  TextBuffer out(budget);
  if (!condense_json(text, out, bytes_max)) return "too long";
  return std::string(out.view());
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", 10000 + i);
  return text;
}

}  // namespace

TEST_CASE("what is short stays as it is") {
  for (const std::string_view text : {R"({"a":[1,2,-3.5e7],"b":"x\"\\","c":[true,false,null],"d":{}})", "", "{",
                                      R"(["unfinished)", R"("\)", "[1,2"}) {
    INFO(text);
    CHECK(condensed(text) == text);
  }
}

TEST_CASE("long strings and lists of numbers shrink, and what stands around them stays") {
  const std::string list = condensed("{\"context\":[" + numbers(100'000) + "],\"eval_count\":7}");
  CHECK(list.size() < 1000);
  CHECK(list.starts_with("{\"context\":[10000, 10001, "));
  CHECK(list.ends_with("109999],\"eval_count\":7}"));
  for (const char* unit : {"x", "\\n", "\\\"", "\xE4\xB8\xAD"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += unit;
    const std::string shorter = condensed("{\"prompt\":\"" + text + "\",\"n\":1}");
    INFO(shorter);
    CHECK(shorter.size() < 400);
    CHECK(shorter.ends_with("\",\"n\":1}"));
    DialectReader reader;
    CHECK(reader.read_request(shorter, 0, false).has_value());
  }
  CHECK(condensed("[\"a\",\"b\"]", 4) == "too long");
}

TEST_CASE("a last line of megabytes gives its totals") {
  const std::string line = R"({"model":"m","created_at":"2026-01-01T00:00:00Z","response":"","done":true,"context":[)" +
                           numbers(500'000) + R"(],"prompt_eval_count":11,"eval_count":22})";
  REQUIRE(line.size() > 3'000'000);
  DialectReader reader;
  const Dialect* dialect = nullptr;
  CHECK(reader.read_frame(line, 0, dialect) == Reading::kOwn);
  CHECK(reader.facts().prompt_tokens == std::uint64_t{11});
}

}  // namespace rooflined::tap
