#include "metrics/base/utf8.h"

#include "tests/support/catch.h"

using rooflined::to_label;

TEST_CASE("a label is valid UTF-8 whatever came in") {
  struct Row {
    const char* name;
    std::string_view raw;
    std::string_view label;
  };
  const Row rows[] = {
      {"plain", "qwen2.5", "qwen2.5"},
      {"two bytes", "caf\xC3\xA9", "caf\xC3\xA9"},
      {"not UTF-8", "\xFF\xFE\x41", "\xEF\xBF\xBD\xEF\xBF\xBD\x41"},
      {"overlong slash", "\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"surrogate", "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"cut short", "a\xE2\x82", "a\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"newline", "a\nb", "a b"},
      {"four bytes", "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
      {"beyond U+10FFFF", "\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(to_label(row.raw) == row.label);
  }
}

TEST_CASE("a label is cut at a character's border") {
  CHECK(to_label("ab\xC3\xA9z", 3) == "ab");
}
