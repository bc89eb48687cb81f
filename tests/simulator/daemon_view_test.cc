#include "tests/simulator/daemon_view.h"

#include "tests/support/catch.h"

namespace rooflined::simulator {
namespace {

constexpr const char* kBefore = R"(# HELP rooflined_decode_bytes_total x
rooflined_decode_bytes_total{target="a-1",model="m",component="dense"} 100
rooflined_decode_bytes_total{target="a-1",model="m",component="kv"} 10
rooflined_output_tokens_total{target="a-1",model="m"} 5
rooflined_output_tokens_total{target="b-2",model="m"} 500
)";
constexpr const char* kAfter = R"(rooflined_decode_bytes_total{target="a-1",model="m",component="dense"} 1000
rooflined_decode_bytes_total{target="a-1",model="m",component="kv"} 110
rooflined_decode_busy_seconds_total{target="a-1",model="m"} 4
rooflined_decode_sequence_seconds_total{target="a-1",model="m"} 8
rooflined_decode_tokens_total{target="a-1",model="m"} 16
rooflined_output_tokens_total{target="a-1",model="m"} 25
rooflined_output_tokens_total{target="b-2",model="m"} 501
rooflined_target_bandwidth_bytes_per_second{target="a-1"} 500
rooflined_up 1
)";

TEST_CASE("the figures are those of the target that bore most tokens") {
  const auto figures = daemon_figures(parse_scrape(kBefore), parse_scrape(kAfter), 10, "", 1);
  REQUIRE(figures);
  CHECK(figures->target == "a-1");
  CHECK(*figures->mbu == Approx(1000.0 / (4 * 500)));
  CHECK(*figures->batch == Approx(2));
  CHECK(*figures->itl_seconds == Approx(0.5));
  CHECK(figures->tokens_per_second == Approx(2));
  CHECK(*daemon_figures(parse_scrape(kBefore), parse_scrape(kAfter), 10, "", 2)->mbu == Approx(1000.0 / (2 * 500)));
}

TEST_CASE("a target without decode has no MBU, an unknown one no figures") {
  const auto figures = daemon_figures(parse_scrape(kBefore), parse_scrape(kAfter), 10, "b-2", 1);
  REQUIRE(figures);
  CHECK_FALSE(figures->mbu);
  CHECK_FALSE(daemon_figures(parse_scrape(kBefore), parse_scrape(kAfter), 10, "c", 1));
  CHECK_FALSE(daemon_figures(parse_scrape(kAfter), parse_scrape(kAfter), 10, "", 1));
}

}  // namespace
}  // namespace rooflined::simulator
