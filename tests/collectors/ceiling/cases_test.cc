// The cases from the field (data/bandwidth_cases.json): files of /proc, /sys and the cgroups, and what is right for
// them. Every answer is looked up by its name, so a case of the same kind needs a line of data and no code.

#include "collectors/ceiling/caches.h"
#include "collectors/ceiling/conditions.h"
#include "collectors/ceiling/history.h"
#include "collectors/ceiling/measure.h"
#include "collectors/ceiling/sweep.h"
#include "collectors/ceiling/system_files.h"
#include "collectors/ceiling/topology.h"
#include "collectors/ceiling/working_set.h"
#include "tests/collectors/ceiling/fake_tree.h"
#include "tests/support/catch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;
using Json = nlohmann::json;

namespace {

Json cases() {
  std::ifstream file(std::string(ROOFLINED_TEST_DATA) + "/bandwidth_cases.json");
  REQUIRE(file.good());
  return Json::parse(file);
}

const Json& case_named(const Json& all, const std::string& id) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Json& one) { return one["id"] == id; });
  REQUIRE(found != all.end());
  return *found;
}

// A case that names CPUs without saying which are online means that all of them are.
std::unique_ptr<FakeTree> tree_of(const Json& input) {
  auto tree = std::make_unique<FakeTree>();
  std::string named;
  for (const auto& [path, value] : input.items()) {
    if (!path.starts_with('/') || path.find(' ') != std::string::npos) continue;
    const auto text = value.get<std::string>();
    tree->write(path, text);
    if (path.ends_with("/cpus") || path.ends_with("/cpulist")) named += std::string(trimmed(text)) + ",";
  }
  const std::string online = "/sys/devices/system/cpu/online";
  if (!input.contains(online) && !named.empty()) tree->write(online, named);
  return tree;
}

std::optional<std::vector<int>> affinity_of(const Json& input) {
  if (!input.contains("affinity")) return std::nullopt;
  return parse_cpu_list(input["affinity"].get<std::string>());
}

// Answers about the topology and the caches, for any case whose input is a tree of files.
bool checked_by_name(const std::string& key, const Json& right, const FakeTree& tree,
                     const std::optional<std::vector<int>>& affinity) {
  const Topology topology = read_topology(tree.root(), affinity);
  if (key == "max_threads") {
    CHECK(topology.threads_max() == right.get<unsigned>());
    CHECK(thread_counts(topology).back() == right.get<unsigned>());
  } else if (key == "p_cores") {
    CHECK(topology.physical_cores() - topology.efficient_cores() == right.get<unsigned>());
  } else if (key == "e_cores") {
    CHECK(topology.efficient_cores() == right.get<unsigned>());
  } else if (key == "aggregate_llc_bytes") {
    CHECK(read_llc_bytes(tree.root()) == right.get<Bytes>());
  } else if (key == "working_set_min_bytes") {
    MemoryFacts memory;
    memory.total = memory.free = kGiB * 1024;
    const auto set = plan_working_set(memory, read_llc_bytes(tree.root()), std::nullopt);
    REQUIRE(set.ok());
    CHECK(set->size >= right.get<Bytes>());
  } else if (key == "ceiling_flag") {
    CHECK(topology.throttled() == (right.get<std::string>().find("throttled") != std::string::npos));
  } else {
    return false;
  }
  return true;
}

std::map<std::string, std::string> machine(Bytes llc) {
  const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index3";
  return {{"/proc/meminfo", "MemTotal: 4000000 kB\nMemFree: 3000000 kB\n"},
          {"/sys/devices/system/cpu/online", "0\n"},
          {cache + "/size", std::to_string(llc / kKiB) + "K\n"},
          {cache + "/level", "3\n"},
          {cache + "/type", "Unified\n"},
          {cache + "/shared_cpu_list", "0\n"}};
}

}  // namespace

TEST_CASE("what files say of CPUs, quotas and caches") {
  std::set<std::string> seen;
  const Json all = cases();
  for (const Json& one : all) {
    const auto tree = tree_of(one["input"]);
    INFO(one["id"].get<std::string>() << " " << one["what"].get<std::string>());
    for (const auto& [key, right] : one["right"].items()) {
      // D09 gives sizes as numbers, and has a test of its own.
      if (one["id"] == "D09" || !checked_by_name(key, right, *tree, affinity_of(one["input"]))) continue;
      seen.insert(one["id"].get<std::string>());
    }
  }
  CHECK(seen == std::set<std::string>{"D01", "D03", "D07", "D17", "D29"});
}

TEST_CASE("D05: version 1 of the cgroups") {
  const Json all = cases();
  const Json& one = case_named(all, "D05");
  Json limited = one["input"]["v1 limited"], unlimited = one["input"]["v1 unlimited"];
  limited["/sys/devices/system/cpu/online"] = unlimited["/sys/devices/system/cpu/online"] = "0-19\n";
  CHECK(read_topology(tree_of(limited)->root(), std::nullopt).threads_max() == one["right"]["limited"].get<unsigned>());
  CHECK(read_topology(tree_of(unlimited)->root(), std::nullopt).threads_max() == 20);
}

TEST_CASE("D09: a working set that the caches hold is no ceiling, however fast") {
  const Json all = cases();
  const Json& input = case_named(all, "D09")["input"];
  // The same proportion, small.
  const Bytes llc = input["aggregate_llc_bytes"].get<Bytes>() / 16;
  const FakeTree tree(machine(llc));
  Options options;
  options.root = tree.root();
  options.working_set = input["working_set_bytes"].get<Bytes>() / 16;
  options.start_from = StartFrom{"linear", 1, true};
  const auto stop = StopPage::create();
  REQUIRE(stop.ok());
  const auto measured = measure(options, *stop, nullptr);
  REQUIRE(measured.ok());
  CHECK(measured->cache_inflated);
  CHECK_FALSE(measured->adoptable());
  if (measured->stable()) CHECK(measured->verdict == Verdict::kCacheResident);
}

TEST_CASE("D11: a buffer that is not resident is not measured") {
  const Json all = cases();
  auto files = machine(kMiB);
  const auto resident = case_named(all, "D11")["input"]["rss_after_first_pass_bytes"].get<Bytes>();
  files["/proc/self/smaps_rollup"] = "Rss: " + std::to_string(resident / kKiB) + " kB\nAnonHugePages: 0 kB\n";
  const FakeTree tree(files);
  Options options;
  options.root = tree.root();
  options.working_set = 8 * kMiB;
  const auto stop = StopPage::create();
  REQUIRE(stop.ok());
  CHECK(measure(options, *stop, nullptr).error().where == "memory");
}

TEST_CASE("D15: the CPUs of a node need not be neighbours") {
  const Json all = cases();
  const Json& one = case_named(all, "D15");
  const auto tree = tree_of(one["input"]);
  Topology topology = read_topology(tree->root(), std::nullopt);
  REQUIRE(keep_nodes(topology, {0}));
  CHECK(topology.cpus.size() == one["right"]["node0 cpus"].get<std::size_t>());
  const auto has = [&](const char* key) {
    return std::any_of(topology.cpus.begin(), topology.cpus.end(),
                       [&](const Cpu& cpu) { return cpu.id == one["right"][key].get<int>(); });
  };
  CHECK(has("includes"));
  CHECK_FALSE(has("excludes"));
}

TEST_CASE("D17: on a hybrid processor every count is tried") {
  const Json all = cases();
  const auto tree = tree_of(case_named(all, "D17")["input"]);
  const auto counts = thread_counts(read_topology(tree->root(), std::nullopt));
  REQUIRE(counts.size() == 20);
  for (unsigned count = 1; count <= 20; ++count) CHECK(counts[count - 1] == count);
}

TEST_CASE("D19: a result that constant load held down does not replace the ceiling") {
  const Json all = cases();
  const Json& input = case_named(all, "D19")["input"];
  History history;
  ConfirmedResult good;
  good.ceiling = good.median = input["previous ceiling"].get<double>() * 1e9;
  history.restore(good);
  ConfirmedResult low;
  const auto rates = input["reps GB/s"].get<std::vector<double>>();
  low.ceiling = *std::max_element(rates.begin(), rates.end()) * 1e9;
  low.median = median(rates) * 1e9;
  CHECK(history.take(low) == History::Judgement::kSuspect);
  CHECK(history.adopted()->ceiling == good.ceiling);
  // The readings of the host say it first: of ten seconds on eight CPUs, ours ran on two.
  Conditions before, after;
  after.uptime_seconds = 10;
  after.own_cpu_seconds = 20;
  after.cpu.busy = static_cast<std::uint64_t>((1 - input["cpu idle"].get<double>()) * 8 * 10 * 100);
  CHECK(surroundings_between(before, after).others_cpus == Approx(3.2));
}

TEST_CASE("D21: steal") {
  const Json all = cases();
  const Json& one = case_named(all, "D21");
  const auto before = parse_cpu_times(one["input"]["/proc/stat before"].get<std::string>());
  const auto after = parse_cpu_times(one["input"]["/proc/stat after"].get<std::string>());
  CHECK(steal_share(*before, *after) == Approx(one["right"]["steal_share"].get<double>()));
}

TEST_CASE("D23: a clock that stood still gives no sample") {
  class Still : public RepetitionSource {
    Result<Repetition> repeat(std::size_t, unsigned) override { return Repetition{536870912, Duration(0)}; }
  } still;
  CHECK(run_cell(0, 1, 5, still, nullptr).error().where == "clock");
}

TEST_CASE("D25: under memory pressure the window is skipped") {
  const Json all = cases();
  const Json& one = case_named(all, "D25");
  const auto tree = tree_of(one["input"]);
  const auto set = plan_working_set(read_memory_facts(tree->root()), std::nullopt, std::nullopt);
  REQUIRE_FALSE(set.ok());
  CHECK(set.error().where == one["right"]["reason"].get<std::string>());
}

// D13 (pages alike) is in worker_pool_test.cc, D27 (a request comes) in probe_process_test.cc.
