#include "daemon/measurement_table.h"

#include "tests/support/catch.h"

#include <string>

using namespace rooflined;
using daemon::measurement_table;

namespace {

ceiling::Measurement confirmed() {
  ceiling::Measurement measured;
  measured.winner = ceiling::MeasuredCell{"streams4", 4, 40e9, 36e9, true, {40e9, 36e9, 30e9}};
  measured.verdict = ceiling::Verdict::kConfirmed;
  measured.working_set = 2 * kGiB;
  measured.llc = 512 * kMiB;
  measured.instruction_set = "AVX2";
  measured.duration_seconds = 7.25;
  measured.cells = {{"linear", 1, 20e9, 10e9, false, {}}, {"streams4", 4, 41e9, 37e9, true, {}}};
  return measured;
}

bool holds_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("the table says what was measured and what came of it") {
  const std::string text = measurement_table(confirmed());
  CHECK(holds_line(text, "linear                     1       20.00         10.00         0.50  unstable"));
  CHECK(holds_line(text, "streams4                   4       41.00         37.00         0.90  <- chosen"));
  CHECK(holds_line(text, "working set  2.15 GB (4.0 x the last-level caches of 512 MiB), small pages, AVX2"));
  CHECK(holds_line(text,
                   "ceiling      40.00 GB/s: streams4 with 4 threads, median 36.00 GB/s (90 % of the best) in 3 fresh "
                   "repetitions"));
  CHECK(holds_line(text, "took         7.2 s"));
  CHECK(text.find("node") == std::string::npos);
}

TEST_CASE("the table shows memory nodes where there are several, and warnings") {
  ceiling::Measurement measured = confirmed();
  measured.nodes = {{0, 21e9, 20e9, true}, {12, 20e9, 14e9, false}};
  measured.warnings = {"one thing", "another"};
  const std::string text = measurement_table(measured);
  CHECK(holds_line(text, "node 0       21.00 GB/s alone, median 20.00 GB/s (95 % of the best)"));
  CHECK(holds_line(text, "node 12      20.00 GB/s alone, median 14.00 GB/s (70 % of the best)  unstable"));
  CHECK(holds_line(text, "warning      one thing"));
  CHECK(holds_line(text, "warning      another"));
}

TEST_CASE("a measurement that is no ceiling says why, and unknown caches are unknown") {
  ceiling::Measurement measured = confirmed();
  measured.verdict = ceiling::Verdict::kContended;
  measured.llc.reset();
  const std::string text = measurement_table(measured);
  CHECK(holds_line(text, "ceiling      none: the measurement is contended"));
  CHECK(holds_line(text, "working set  2.15 GB (cache size unknown), small pages, AVX2"));
}
