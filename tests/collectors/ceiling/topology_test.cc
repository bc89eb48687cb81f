#include "collectors/ceiling/topology.h"

#include "collectors/ceiling/cgroup.h"
#include "collectors/ceiling/system_files.h"
#include "tests/collectors/ceiling/fake_tree.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;

namespace {

const std::string kCpus = "/sys/devices/system/cpu";

// `cores` cores of two CPUs each, the siblings numbered behind all cores as Linux does.
std::map<std::string, std::string> smt_tree(int cores) {
  std::map<std::string, std::string> files = {{kCpus + "/online", "0-" + std::to_string(2 * cores - 1) + "\n"}};
  for (int cpu = 0; cpu < 2 * cores; ++cpu) {
    const int core = cpu % cores;
    files[kCpus + "/cpu" + std::to_string(cpu) + "/topology/core_cpus_list"] =
        std::to_string(core) + "," + std::to_string(core + cores) + "\n";
  }
  return files;
}

}  // namespace

TEST_CASE("CPU lists") {
  struct Row {
    std::string text;
    std::vector<int> cpus;
  };
  const std::vector<Row> rows = {
      {"0-3,6,8-11\n", {0, 1, 2, 3, 6, 8, 9, 10, 11}},
      {"5\n", {5}},
      {"", {}},
      {"\n", {}},
      {"3,1,1-2", {1, 2, 3}},
      {"x,2", {2}},
      {"4-2", {}},
      {"1,", {1}},
      {"18446744073709551615", {}},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(parse_cpu_list(row.text) == row.cpus);
  }
  CHECK(parse_cpu_list("0-4294967295").size() == 65536);
}

TEST_CASE("most threads: online CPUs, affinity and quota") {
  struct Row {
    std::string name;
    std::map<std::string, std::string> files;
    std::optional<std::vector<int>> affinity;
    unsigned threads_max;
    bool throttled;
  };
  const std::string online = kCpus + "/online";
  const std::vector<Row> rows = {
      {"D01: quota of 4 CPUs on 8",
       {{"/sys/fs/cgroup/cpu.max", "400000 100000\n"}, {online, "0-7\n"}},
       std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7},
       4,
       false},
      {"D03: quota of half a CPU", {{"/sys/fs/cgroup/cpu.max", "50000 100000\n"}, {online, "0-19\n"}}, {}, 1, true},
      {"D05: version 1",
       {{"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "765000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
        {online, "0-15\n"}},
       {},
       7,
       false},
      {"D05: version 1, joined controllers",
       {{"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "765000\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
        {online, "0-15\n"}},
       {},
       7,
       false},
      {"D05: version 1 without a limit",
       {{"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
        {online, "0-15\n"}},
       {},
       16,
       false},
      {"version 2 without a limit", {{"/sys/fs/cgroup/cpu.max", "max 100000\n"}, {online, "0-3\n"}}, {}, 4, false},
      {"a period of zero", {{"/sys/fs/cgroup/cpu.max", "50000 0\n"}, {online, "0-3\n"}}, {}, 4, false},
      {"quota above the CPUs", {{"/sys/fs/cgroup/cpu.max", "3200000 100000\n"}, {online, "0-3\n"}}, {}, 4, false},
      {"the tightest level wins",
       {{"/proc/self/cgroup", "0::/system.slice/rooflined.service\n"},
        {"/sys/fs/cgroup/system.slice/cpu.max", "200000 100000\n"},
        {"/sys/fs/cgroup/system.slice/rooflined.service/cpu.max", "max 100000\n"},
        {online, "0-7\n"}},
       {},
       2,
       false},
      {"another group's quota is not ours",
       {{"/proc/self/cgroup", "0::/system.slice\n"},
        {"/sys/fs/cgroup/user.slice/cpu.max", "100000 100000\n"},
        {online, "0-7\n"}},
       {},
       8,
       false},
      {"version 1 in a group of its own",
       {{"/proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/b/c\n0::/d\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us", "300000\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_period_us", "100000\n"},
        {online, "0-7\n"}},
       {},
       3,
       false},
      {"D29: holes in the online list, smaller affinity",
       {{online, "0-3,6,8-11\n"}},
       std::vector<int>{2, 3, 6},
       3,
       false},
      {"offline CPUs in the affinity", {{online, "0-1\n"}}, std::vector<int>{1, 2, 3}, 1, false},
      {"nothing known", {}, {}, 1, false},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const FakeTree tree(row.files);
    const Topology topology = read_topology(tree.root(), row.affinity);
    CHECK(topology.threads_max() == row.threads_max);
    CHECK(topology.throttled() == row.throttled);
    CHECK(thread_counts(topology).back() == row.threads_max);
  }
}

TEST_CASE("thread counts to try") {
  struct Row {
    std::string name;
    std::map<std::string, std::string> files;
    std::vector<unsigned> counts;
  };
  auto quota = smt_tree(8);
  quota["/sys/fs/cgroup/cpu.max"] = "600000 100000\n";
  const std::vector<Row> rows = {
      {"one CPU", {{kCpus + "/online", "0\n"}}, {1}},
      {"two CPUs", {{kCpus + "/online", "0-1\n"}}, {1, 2}},
      {"four CPUs without siblings", {{kCpus + "/online", "0-3\n"}}, {1, 2, 4}},
      {"eight cores with siblings", smt_tree(8), {1, 4, 8, 16}},
      {"the same under a quota of six", quota, {1, 4, 6}},
      {"hybrid, 2 P and 4 E cores",
       {{kCpus + "/online", "0-5\n"}, {"/sys/devices/cpu_core/cpus", "0-1\n"}, {"/sys/devices/cpu_atom/cpus", "2-5\n"}},
       {1, 2, 3, 4, 5, 6}},
      {"big.LITTLE, 4 small and 2 big ones",
       {{kCpus + "/online", "0-5\n"},
        {kCpus + "/cpu0/cpu_capacity", "381\n"},
        {kCpus + "/cpu1/cpu_capacity", "381\n"},
        {kCpus + "/cpu2/cpu_capacity", "381\n"},
        {kCpus + "/cpu3/cpu_capacity", "381\n"},
        {kCpus + "/cpu4/cpu_capacity", "1024\n"},
        {kCpus + "/cpu5/cpu_capacity", "1024\n"}},
       {1, 2, 3, 4, 5, 6}},
      {"four CPUs in a cpuset of two",
       {{kCpus + "/online", "0-3\n"}, {"/sys/fs/cgroup/cpuset.cpus.effective", "1,3\n"}},
       {1, 2}},
      {"the same in version 1",
       {{kCpus + "/online", "0-3\n"},
        {"/proc/self/cgroup", "3:cpuset:/box\n"},
        {"/sys/fs/cgroup/cpuset/box/cpuset.cpus", "0-1\n"}},
       {1, 2}},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const FakeTree tree(row.files);
    CHECK(thread_counts(read_topology(tree.root(), std::nullopt)) == row.counts);
  }
}

TEST_CASE("D17: P and E cores are told apart, and P cores come first") {
  const FakeTree tree({{kCpus + "/online", "0-19\n"},
                       {"/sys/devices/cpu_core/cpus", "0-7\n"},
                       {"/sys/devices/cpu_atom/cpus", "8-19\n"}});
  const Topology topology = read_topology(tree.root(), std::nullopt);
  CHECK(topology.physical_cores() == 20);
  CHECK(topology.efficient_cores() == 12);
  CHECK(placement(topology, 8) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("D15: the CPUs of a node are not contiguous") {
  const FakeTree tree({{kCpus + "/online", "0-127\n"},
                       {"/sys/devices/system/node/node0/cpulist", "0-31,64-95\n"},
                       {"/sys/devices/system/node/node1/cpulist", "32-63,96-127\n"}});
  const Topology topology = read_topology(tree.root(), std::nullopt);
  const auto of_node = [&](int node) {
    return std::count_if(topology.cpus.begin(), topology.cpus.end(), [&](const Cpu& cpu) { return cpu.node == node; });
  };
  CHECK(of_node(0) == 64);
  CHECK(of_node(1) == 64);
  CHECK(topology.cpus[64].node == 0);
  CHECK(topology.cpus[32].node == 1);
  // Two workers sit on two nodes; all workers of a node are neighbours in the buffer.
  CHECK(placement(topology, 2) == std::vector<int>{0, 32});
  CHECK(placement(topology, 4) == std::vector<int>{0, 1, 32, 33});
}

TEST_CASE("one worker a core before any sibling, and smaller counts are subsets") {
  const FakeTree tree(smt_tree(4));
  const Topology topology = read_topology(tree.root(), std::nullopt);
  CHECK(topology.physical_cores() == 4);
  CHECK(placement(topology, 4) == std::vector<int>{0, 1, 2, 3});
  for (unsigned threads = 1; threads < 8; ++threads) {
    const auto fewer = placement(topology, threads);
    const auto more = placement(topology, threads + 1);
    CHECK(std::includes(more.begin(), more.end(), fewer.begin(), fewer.end()));
  }
}

TEST_CASE("a core of which only the second sibling is allowed still counts as a core") {
  const FakeTree tree(smt_tree(4));
  const Topology topology = read_topology(tree.root(), std::vector<int>{5, 6});
  CHECK(topology.physical_cores() == 2);
  CHECK(placement(topology, 2) == std::vector<int>{5, 6});
}

TEST_CASE("this machine has a usable CPU") {
  const Topology topology = read_topology("/", std::nullopt);
  CHECK(topology.physical_cores() >= 1);
  CHECK(topology.threads_max() <= topology.cpus.size());
}
