// Goal: a scrape shows exactly what the snapshot holds: absent stays absent, labels are safe, no series appears twice,
// and the size stays within its bars. Method: the real exporter over snapshots made here, read as text.

#include "metrics/export/scrape.h"

#include "metrics/catalogue.h"
#include "tests/metrics/export/sample_snapshot.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

using namespace rooflined;
using namespace rooflined::metrics_export;

namespace {

std::string scrape(const Snapshot& snapshot) {
  return prometheus_text(metric_families(&snapshot, {"1.2.3", {}, {}}));
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with('#') && line.find(part) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

bool has(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

// The golden scrape is rewritten instead of compared when this is set.
bool update_golden() {
  return std::getenv("ROOFLINED_UPDATE_GOLDEN") != nullptr;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the golden scrape: every field of a snapshot, compared whole") {
  const std::string path = ROOFLINED_TEST_DATA "/golden.prom";
  const Snapshot snapshot = sample_snapshot();
  ProcessStats process;
  process.cpu_seconds = 18.01;
  process.resident_bytes = 17698816;
  process.virtual_bytes = 250000000;
  process.open_fds = 14;
  process.max_fds = 1024;
  process.start_time_seconds = 1700000987.65;
  const std::string text = prometheus_text(metric_families(&snapshot, {"1.2.3", process, {1, 2, 3}}));
  if (update_golden()) std::ofstream(path, std::ios::binary) << text;
  const std::string golden = read_file(path);
  INFO("to accept the new scrape, run this test with ROOFLINED_UPDATE_GOLDEN=1");
  CHECK(text == golden);
  // Nothing of the catalogue is forgotten.
  for (const MetricInfo& metric : metric_catalogue()) {
    INFO(metric.name);
    CHECK(text.find("# TYPE " + std::string(metric.name) + " " + std::string(metric_type_name(metric.type))) !=
          std::string::npos);
    CHECK(text.find("# HELP " + std::string(metric.name) + " " + std::string(metric.help) + "\n") != std::string::npos);
  }
}

TEST_CASE("without a snapshot there is what does not come from one") {
  const std::string text = prometheus_text(metric_families(nullptr, {"1.2.3", {}, {}}));
  CHECK(has(text, "rooflined_build_info{version=\"1.2.3\"} 1"));
  CHECK(lines_with(text, "rooflined_").size() == 4);
}

TEST_CASE("an empty optional is an absent series, not zero") {
  Snapshot snapshot;
  TargetSnapshot target;
  target.target = "t";
  target.model = "m";
  target.windows.resize(1);
  target.windows[0].window = "1m";
  snapshot.targets = {target};
  const std::string text = scrape(snapshot);
  CHECK(has(text, "rooflined_tokens_per_second{target=\"t\",model=\"m\",window=\"1m\"} 0"));
  CHECK(has(text, "rooflined_output_tokens_total{target=\"t\",model=\"m\"} 0"));
  CHECK(has(text, "rooflined_inter_token_latency_seconds_count{target=\"t\",model=\"m\"} 0"));
  CHECK(has(text, "rooflined_inter_token_latency_seconds_bucket{target=\"t\",model=\"m\",le=\"+Inf\"} 0"));
  for (const char* absent : {"mbu_ratio", "batch_size", "context_tokens", "itl_seconds{", "decode_bandwidth_ratio",
                             "bytes_per_second", "ceiling_exceeded", "mbu_caveat", "geometry_info", "ceiling_info",
                             "ceiling_stale", "rooflined_idle", "sequence_exits", "tokens_per_second_bound"}) {
    INFO(absent);
    CHECK(lines_with(text, absent).empty());
  }
}

TEST_CASE("E01: of a target that has gone only its counters and target_up stay") {
  const std::string text = scrape(sample_snapshot());
  CHECK(has(text, "rooflined_target_up{target=\"vllm-8000\"} 0"));
  CHECK(has(text, "rooflined_target_up{target=\"llama.cpp-8080\"} 1"));
  CHECK(lines_with(text, "rooflined_output_tokens_total{target=\"vllm-8000\"").size() == 1);
  for (const std::string& line : lines_with(text, "target=\"vllm-8000\"")) {
    INFO(line);
    CHECK((line.find("_total{") != std::string::npos || line.find("_bucket{") != std::string::npos ||
           line.find("_count{") != std::string::npos || line.find("_sum{") != std::string::npos ||
           line.starts_with("rooflined_target_up")));
  }
}

TEST_CASE("while the capture is down, no gauge of a target is shown") {
  Snapshot snapshot = sample_snapshot();
  snapshot.collectors[0].up = false;
  const std::string text = scrape(snapshot);
  CHECK(has(text, "rooflined_collector_up{collector=\"tap\"} 0"));
  CHECK(lines_with(text, "window=").empty());
  CHECK(lines_with(text, "rooflined_flows{").empty());
  CHECK(lines_with(text, "rooflined_active_sequences").empty());
  CHECK(lines_with(text, "rooflined_output_tokens_total").size() == 2);
  CHECK(lines_with(text, "rooflined_ceiling_bytes_per_second").size() == 1);
}

TEST_CASE("a figure that is not finite is absent") {
  Snapshot snapshot = sample_snapshot();
  snapshot.targets[0].windows[0].mbu_ratio = std::numeric_limits<double>::quiet_NaN();
  snapshot.targets[0].windows[1].mbu_ratio = std::numeric_limits<double>::infinity();
  snapshot.targets[0].decode_passes = -std::numeric_limits<double>::infinity();
  const std::string text = scrape(snapshot);
  CHECK(lines_with(text, "rooflined_mbu_ratio").empty());
  CHECK(lines_with(text, "rooflined_decode_passes_total{target=\"llama").empty());
}

TEST_CASE("E03: the state of the ceiling is one series each, whatever happens") {
  Snapshot snapshot = sample_snapshot();
  for (const char* source : {"measured", "configured", "observed"}) {
    snapshot.ceiling->source = source;
    const std::string text = scrape(snapshot);
    CHECK(lines_with(text, "rooflined_ceiling_info").size() == 1);
    CHECK(lines_with(text, "rooflined_ceiling_stale").size() == 1);
    // Stability is a property of a measurement.
    CHECK(lines_with(text, "rooflined_ceiling_stable").size() == (std::string(source) == "measured" ? 1u : 0u));
  }
  CHECK(lines_with(scrape(snapshot), "rooflined_ceiling_measurements_total").size() == 4);
}

TEST_CASE("E09: bytes that are not UTF-8 become replacement characters") {
  Snapshot snapshot;
  snapshot.targets = {sample_target("t",
                                    "\xff\xfe"
                                    "A",
                                    1)};
  CHECK(has(scrape(snapshot), "rooflined_target_up{target=\"t\"} 1"));
  CHECK(lines_with(scrape(snapshot),
                   "model=\"\xef\xbf\xbd\xef\xbf\xbd"
                   "A\"")
            .size() > 50);
}

TEST_CASE("quotes, backslashes and newlines of a name do not end a label") {
  Snapshot snapshot;
  snapshot.targets = {sample_target("t", "a\"b\\c\nd", 1)};
  const std::string text = scrape(snapshot);
  CHECK(lines_with(text, "rooflined_decode_passes_total{target=\"t\",model=\"a\\\"b\\\\c d\"} ").size() == 1);
}

TEST_CASE("E11: never two identical series") {
  Snapshot snapshot;
  // The same model on two ports, names that differ only in bytes that are replaced, and one that looks like a suffixed
  // one.
  snapshot.targets = {sample_target("\xff", "m", 1), sample_target("\xfe", "m", 2),
                      sample_target("\xef\xbf\xbd-2", "m", 3), sample_target("other", "m", 4)};
  snapshot.capture.flows_ignored = {{"\xff", 1}, {"\xfe", 2}};
  snapshot.targets[3].windows.push_back(snapshot.targets[3].windows[0]);
  snapshot.targets[3].caveats = {"sampled", "sampled"};
  snapshot.targets[3].decode_exits = {{"\xff", 1}, {"\xfe", 2}};
  const std::string text = scrape(snapshot);
  std::set<std::string> seen;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    INFO(line);
    CHECK(seen.insert(line.substr(0, line.rfind(' '))).second);
  }
  CHECK(lines_with(text, "rooflined_target_up").size() == 4);
  CHECK(has(text, "rooflined_flows_ignored_total{interface=\"\",reason=\"\xef\xbf\xbd\"} 3"));
  CHECK(has(text, "rooflined_sequence_exits_total{target=\"other\",model=\"m\",reason=\"\xef\xbf\xbd\"} 3"));
}

TEST_CASE("histograms are cumulative and agree with their count") {
  Snapshot snapshot;
  snapshot.targets = {sample_target("t", "m", 7)};
  HistogramSnapshot& histogram = snapshot.targets[0].time_to_first_token;
  histogram.bucket_counts.assign(kRequestLatencyBounds.size() + 1, 2);
  histogram.count = 26;
  histogram.sum = 1.0 / 3;
  const std::string text = scrape(snapshot);
  CHECK(has(text, "rooflined_time_to_first_token_seconds_bucket{target=\"t\",model=\"m\",le=\"0.025\"} 2"));
  CHECK(has(text, "rooflined_time_to_first_token_seconds_bucket{target=\"t\",model=\"m\",le=\"300\"} 24"));
  CHECK(has(text, "rooflined_time_to_first_token_seconds_bucket{target=\"t\",model=\"m\",le=\"+Inf\"} 26"));
  CHECK(has(text, "rooflined_time_to_first_token_seconds_count{target=\"t\",model=\"m\"} 26"));
  CHECK(has(text, "rooflined_time_to_first_token_seconds_sum{target=\"t\",model=\"m\"} 0.3333333333333333"));
  // The first bucket of the two token latencies is at most half a millisecond.
  CHECK(
      lines_with(text, "rooflined_inter_token_latency_seconds_bucket{target=\"t\",model=\"m\",le=\"0.0005\"}").size() ==
      1);
}

TEST_CASE("numbers keep sixteen significant digits") {
  Snapshot snapshot;
  snapshot.targets = {sample_target("t", "m", 7)};
  for (const double value : {123456789012345.0, 9007199254740991.0, 0.1, 1e-9, 2.5e17, 1234567.25}) {
    snapshot.targets[0].decode_passes = value;
    const auto lines = lines_with(scrape(snapshot), "rooflined_decode_passes_total");
    REQUIRE(lines.size() == 1);
    CHECK(std::strtod(lines[0].c_str() + lines[0].rfind(' '), nullptr) == value);
  }
}

TEST_CASE("a target takes at most 15 kB of a scrape") {
  // HELP and TYPE lines come once, however many targets there are: measured as the second target's share.
  Snapshot snapshot;
  snapshot.targets = {sample_target("llama.cpp-8080", "Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL.gguf", 3)};
  const std::size_t one = scrape(snapshot).size();
  snapshot.targets.push_back(sample_target("llama.cpp-8081", "Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL.gguf", 4));
  const std::size_t two = scrape(snapshot).size();
  CAPTURE(one, two);
  CHECK(two - one <= 15'000);
}

TEST_CASE("the catalogue: names and labels follow the rules of Prometheus") {
  std::set<std::string_view> names;
  for (const MetricInfo& metric : metric_catalogue()) {
    INFO(metric.name);
    CHECK(names.insert(metric.name).second);
    CHECK((metric.name.starts_with("rooflined_") || metric.name.starts_with("process_")));
    CHECK(metric.name.ends_with("_total") == (metric.type == MetricType::kCounter));
    CHECK_FALSE(metric.help.empty());
    CHECK(metric.help.ends_with('.'));
    CHECK_FALSE(metric.absent.empty());
    CHECK_FALSE(metric.unit.empty());
    CHECK(metric.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string_view::npos);
  }
}

TEST_CASE("an earlier model of a target keeps its counters under the target's name") {
  Snapshot snapshot;
  snapshot.targets = {sample_target("t", "new.gguf", 1), sample_target("t", "old.gguf", 2)};
  snapshot.targets[1].further = snapshot.targets[1].retired = true;
  snapshot.targets[1].up = false;
  const std::string text = scrape(snapshot);
  CHECK(lines_with(text, "rooflined_output_tokens_total{target=\"t\",model=\"new.gguf\"}").size() == 1);
  CHECK(lines_with(text, "rooflined_output_tokens_total{target=\"t\",model=\"old.gguf\"}").size() == 1);
  CHECK(has(text, "rooflined_target_up{target=\"t\"} 1"));
  CHECK(lines_with(text, "rooflined_target_up{").size() == 1);
}

TEST_CASE("several models of a target: what has no label for the model is of all of them together") {
  Snapshot snapshot;
  snapshot.targets = {sample_target("t", "a", 1), sample_target("t", "b", 2), sample_target("u", "c", 3)};
  snapshot.targets[1].further = true;
  snapshot.targets[0].active_sequences = 2;
  snapshot.targets[1].active_sequences = 3;
  snapshot.targets[0].ceiling_exceeded = false;
  snapshot.targets[1].ceiling_exceeded = true;
  snapshot.targets[0].caveats = {"lossy"};
  snapshot.targets[1].caveats = {"lossy", "speculation"};
  const std::string text = scrape(snapshot);
  CHECK(has(text, "rooflined_active_sequences{target=\"t\"} 5"));
  CHECK(has(text, "rooflined_ceiling_exceeded{target=\"t\"} 1"));
  CHECK(lines_with(text, "rooflined_mbu_caveat{target=\"t\"").size() == 2);
  CHECK(lines_with(text, "rooflined_mbu_ratio{target=\"t\",model=\"a\"").size() ==
        lines_with(text, "rooflined_mbu_ratio{target=\"t\",model=\"b\"").size());
  CHECK_FALSE(lines_with(text, "rooflined_mbu_ratio{target=\"t\",model=\"b\"").empty());
  CHECK(lines_with(text, "rooflined_target_info{target=\"t\"").size() == 1);
  CHECK(lines_with(text, "rooflined_target_up{").size() == 2);
  CHECK(has(text, "rooflined_target_up{target=\"u\"} 1"));
}
