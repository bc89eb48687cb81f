// Goal: /api/v1/state carries every figure of the snapshot under its member's name, and leaves out what is absent.

#include "metrics/export/state_json.h"

#include "tests/metrics/export/sample_snapshot.h"
#include "tests/support/catch.h"

#include <nlohmann/json.hpp>

#include <limits>

using namespace rooflined;
using namespace rooflined::metrics_export;

TEST_CASE("a full snapshot as JSON") {
  const Snapshot snapshot = sample_snapshot();
  const auto state = nlohmann::json::parse(state_json(snapshot, "1.2.3"));
  CHECK(state["version"] == "1.2.3");
  CHECK(state["taken_at"] == 1700000000.5);
  const auto& target = state["targets"][0];
  CHECK(target["target"] == "llama.cpp-8080");
  CHECK(target["server"] == "llama.cpp");
  CHECK(target["port"] == 8080);
  CHECK(target["role"] == "engine");
  CHECK(target["output_tokens"] == snapshot.targets[0].output_tokens);
  CHECK(target["decode_bytes_kv"] == snapshot.targets[0].decode_bytes_kv);
  CHECK(target["requests"]["aborted"] == snapshot.targets[0].requests[1]);
  CHECK(target["tokens_by_source"]["estimated"] == snapshot.targets[0].tokens_by_source[2]);
  CHECK(target["inter_token_latency"]["bounds"].size() + 1 == target["inter_token_latency"]["bucket_counts"].size());
  CHECK(target["decode_exits"]["overtaken"] == 3);
  CHECK(target["caveats"] == nlohmann::json::array({"estimated_tokens"}));
  CHECK(target["geometry"]["kv_bytes_per_token"] == 98304);
  CHECK(target["live"]["window"] == "10s");
  CHECK(target["live"]["tokens_per_second"] == 44);
  CHECK(target["configured"] == true);
  CHECK(target["replicas"] == 2);
  CHECK(target["windows"][1]["window"] == "5m");
  CHECK(target["windows"][0]["mbu_ratio"] == snapshot.targets[0].windows[0].mbu_ratio.value());
  CHECK(target["windows"][0]["itl_seconds"]["p99"] == 0.125);
  CHECK(state["node_ratios"][0]["memory"] == "ram");
  CHECK(state["ceiling"]["last_success"] == 1699996400.25);
  CHECK(state["ceiling"]["results"][0]["bytes_per_second"] == 2.8e10);
  CHECK(state["ceiling_last"]["cells"][1]["kernel"] == "copy");
  CHECK(state["ceiling_last"]["cells"][0]["samples"][1] == 2.75e10);
  CHECK(state["ceiling_last"]["confirmation"]["best"] == 2.8e10);
  CHECK(state["ceiling_last"]["verdict"] == "confirmed");
  CHECK(state["ceiling_measurements"]["aborted"] == 2);
  CHECK(state["idle"] == false);
  CHECK(state["idle_blocked"]["requests"] == true);
  CHECK(state["capture"]["flows_ignored"]["tls"] == 4);
  CHECK(state["collectors"][0]["name"] == "tap");
}

TEST_CASE("what is absent has no key") {
  Snapshot snapshot = sample_snapshot();
  snapshot.ceiling.reset();
  snapshot.idle.reset();
  TargetSnapshot& target = snapshot.targets[0];
  target.bandwidth.reset();
  target.geometry.reset();
  target.windows.resize(1);
  target.windows[0] = WindowSnapshot{};
  target.windows[0].tokens_per_second = std::numeric_limits<double>::infinity();
  const auto state = nlohmann::json::parse(state_json(snapshot, ""));
  CHECK_FALSE(state.contains("ceiling"));
  CHECK_FALSE(state.contains("idle"));
  CHECK_FALSE(state["targets"][0].contains("bandwidth"));
  CHECK_FALSE(state["targets"][0].contains("ceiling_exceeded"));
  CHECK_FALSE(state["targets"][0].contains("geometry"));
  const auto& window = state["targets"][0]["windows"][0];
  CHECK(window.size() == 2);  // its name and decode_busy_ratio
  CHECK_FALSE(window.contains("mbu_ratio"));
  // A target that has gone has counters and nothing else.
  CHECK_FALSE(state["targets"][1].contains("windows"));
  CHECK(state["targets"][1].contains("output_tokens"));
}

TEST_CASE("names of any bytes make valid JSON, and targets keep unique names") {
  Snapshot snapshot;
  snapshot.targets = {sample_target("\xff", "\xff\xfe", 1), sample_target("\xfe", "m\x01", 2)};
  const auto state = nlohmann::json::parse(state_json(snapshot, ""));
  CHECK(state["targets"][0]["target"] != state["targets"][1]["target"]);
  CHECK(state["targets"][1]["model"] == "m ");
}

TEST_CASE("the last minutes of each target, short, and null where there was no decode") {
  Snapshot snapshot = sample_snapshot();
  RecentPoint idle;
  idle.at = 1700000005.25;
  snapshot.targets[0].recent = std::make_shared<const std::vector<RecentPoint>>(
      std::vector<RecentPoint>{{1700000000.5, 41.256, 0.024242, 0.61237}, idle});
  const std::string text = history_json(snapshot);
  const auto history = nlohmann::json::parse(text);
  CHECK(history["fields"] == nlohmann::json::array({"at", "tokens_per_second", "itl_seconds", "mbu_ratio"}));
  CHECK(history["targets"].size() == 1);
  CHECK(history["targets"]["llama.cpp-8080"][0] == nlohmann::json::array({1700000001, 41.26, 0.02424, 0.6124}));
  CHECK(history["targets"]["llama.cpp-8080"][1] == nlohmann::json::array({1700000005, 0, nullptr, nullptr}));
  CHECK(text.find("41.26,") != std::string::npos);
}
