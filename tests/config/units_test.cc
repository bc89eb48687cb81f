// Goal: durations and sizes as people write them, and nothing else.

#include "config/units.h"
#include "tests/support/catch.h"

using namespace rooflined;
using namespace rooflined::config;

TEST_CASE("durations") {
  struct Row {
    const char* text;
    double seconds;
  };
  for (const Row& row : {Row{"500ms", 0.5}, Row{"60s", 60}, Row{"1.5h", 5400}, Row{"7d", 604800}, Row{"2w", 1209600},
                         Row{"0s", 0}, Row{"5 m", 300}}) {
    INFO(row.text);
    REQUIRE(parse_duration(row.text));
    CHECK(to_seconds(*parse_duration(row.text)) == Approx(row.seconds));
  }
  for (const char* wrong : {"", "s", "60", "60 seconds", "-1s", "-0s", "1e3s", "nans", "infs", "1h30m", "999999999d",
                            "1S", " 1s", "1s ", "0x10s"}) {
    INFO(wrong);
    CHECK_FALSE(parse_duration(wrong));
  }
}

TEST_CASE("sizes and rates") {
  struct Row {
    const char* text;
    double bytes;
  };
  for (const Row& row :
       {Row{"0", 0}, Row{"4096", 4096}, Row{"64MB", 64e6}, Row{"2GiB", 2147483648.0}, Row{"1.5 TiB", 1649267441664.0},
        Row{"204.8GB", 204.8e9}, Row{"204.8GB/s", 204.8e9}, Row{"10kB", 1e4}, Row{"10KiB", 10240}, Row{"7B", 7}}) {
    INFO(row.text);
    REQUIRE(parse_bytes(row.text));
    CHECK(*parse_bytes(row.text) == Approx(row.bytes));
  }
  for (const char* wrong : {"", "GB", "2 gigs", "-1MB", "1e999", "inf", "nan", "2GB/h", "2Gb", "2G", "/s"}) {
    INFO(wrong);
    CHECK_FALSE(parse_bytes(wrong));
  }
}
