#include "collectors/ceiling/working_set.h"

#include "collectors/ceiling/caches.h"
#include "tests/collectors/ceiling/fake_tree.h"
#include "tests/support/catch.h"

#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;

namespace {

std::map<std::string, std::string> cache_files(int cpu, int index, const std::string& size, const std::string& level,
                                               const std::string& type, const std::string& shared) {
  const std::string folder =
      "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index);
  return {{folder + "/size", size},
          {folder + "/level", level},
          {folder + "/type", type},
          {folder + "/shared_cpu_list", shared}};
}

MemoryFacts machine(Bytes total, Bytes free) {
  MemoryFacts facts;
  facts.total = total;
  facts.free = free;
  return facts;
}

}  // namespace

TEST_CASE("sizes as /sys writes them") {
  CHECK(read_llc_bytes(FakeTree().root()) == std::nullopt);
  for (const auto& [text, bytes] : std::map<std::string, std::optional<Bytes>>{
           {"98304K\n", 98304 * kKiB}, {"32M", 32 * kMiB}, {"512", Bytes{512}}, {"x\n", std::nullopt}}) {
    const FakeTree tree(cache_files(0, 3, text, "3\n", "Unified\n", "0\n"));
    INFO(text);
    CHECK(read_llc_bytes(tree.root()) == bytes);
  }
}

TEST_CASE("D07: twelve slices of the third level are one cache of 1.125 GiB") {
  FakeTree tree;
  for (int cpu = 0; cpu < 192; ++cpu) {
    const int first = cpu / 16 * 16;
    const std::string shared = std::to_string(first) + "-" + std::to_string(first + 15) + "\n";
    for (const auto& [path, text] : cache_files(cpu, 2, "1024K\n", "2\n", "Unified\n", std::to_string(cpu) + "\n")) {
      tree.write(path, text);
    }
    for (const auto& [path, text] : cache_files(cpu, 3, "98304K\n", "3\n", "Unified\n", shared)) tree.write(path, text);
  }
  const auto llc = read_llc_bytes(tree.root());
  REQUIRE(llc);
  CHECK(*llc == 1207959552);
  const auto set = plan_working_set(machine(1536 * kGiB, 1000 * kGiB), llc, std::nullopt);
  REQUIRE(set.ok());
  CHECK(set->size >= 2415919104);
  CHECK(set->size == 4 * *llc);
  CHECK_FALSE(set->cache_inflated);
}

TEST_CASE("the highest level counts, instruction caches do not") {
  FakeTree tree;
  for (int cpu = 0; cpu < 2; ++cpu) {
    const std::string alone = std::to_string(cpu) + "\n";
    for (const auto& [path, text] : cache_files(cpu, 0, "32K\n", "1\n", "Data\n", alone)) tree.write(path, text);
    for (const auto& [path, text] : cache_files(cpu, 1, "64M\n", "4\n", "Instruction\n", alone)) tree.write(path, text);
    for (const auto& [path, text] : cache_files(cpu, 2, "1M\n", "2\n", "Unified\n", "0-1\n")) tree.write(path, text);
  }
  CHECK(read_llc_bytes(tree.root()) == 1 * kMiB);
}

TEST_CASE("what the processor says about a cache") {
  // 15 ways of 64-byte lines, 524288 sets, third level, unified, shared by 128: 480 MiB.
  const auto leaf = decode_cache_leaf(3U | 3U << 5U | 127U << 14U, 63U | 14U << 22U, 524287);
  REQUIRE(leaf);
  CHECK(leaf->level == 3);
  CHECK(leaf->size == 480 * kMiB);
  CHECK(leaf->sharing_cpus == 128);
  CHECK_FALSE(leaf->instruction);
  CHECK(decode_cache_leaf(2U | 1U << 5U, 63U | 7U << 22U, 63)->instruction);
  CHECK_FALSE(decode_cache_leaf(0, 0, 0));
}

TEST_CASE("the working set") {
  struct Row {
    std::string name;
    MemoryFacts memory;
    std::optional<Bytes> llc;
    std::optional<Bytes> requested;
    std::optional<Bytes> size;  // absent: refused
    bool cache_inflated;
    std::string reason;
  };
  MemoryFacts tight = machine(64 * kGiB, 60 * kGiB);
  tight.cgroup_room = 256 * kMiB + 16 * kMiB;
  MemoryFacts pressed = machine(64 * kGiB, 60 * kGiB);
  pressed.pressure_some_avg10 = 12;
  const std::vector<Row> rows = {
      {"four times the caches", machine(64 * kGiB, 60 * kGiB), 32 * kMiB, {}, 128 * kMiB, false, ""},
      {"at least 64 MiB", machine(8 * kGiB, 7 * kGiB), 1 * kMiB, {}, 64 * kMiB, false, ""},
      {"caches unknown", machine(64 * kGiB, 60 * kGiB), {}, {}, 2 * kGiB, false, ""},
      {"caches unknown, 8 GB", machine(8 * kGiB, 7 * kGiB), {}, {}, 1 * kGiB, false, ""},
      {"an eighth of the RAM", machine(8 * kGiB, 7 * kGiB), 480 * kMiB, {}, 1 * kGiB, true, ""},
      {"a machine with 1 GB", machine(1 * kGiB, 600 * kMiB), 2 * kMiB, {}, 64 * kMiB, false, ""},
      {"1 GB and a large cache", machine(1 * kGiB, 600 * kMiB), 32 * kMiB, {}, 128 * kMiB, false, ""},
      {"free memory only", machine(64 * kGiB, 516 * kMiB), 480 * kMiB, {}, 500 * kMiB, true, ""},
      {"no room", machine(64 * kGiB, 70 * kMiB), 480 * kMiB, {}, {}, false, "memory"},
      {"400 MB of RAM", machine(400 * kMiB, 300 * kMiB), 1 * kMiB, {}, {}, false, "memory"},
      {"the cgroup's room", tight, 480 * kMiB, {}, 256 * kMiB, true, ""},
      {"pressure", pressed, 32 * kMiB, {}, {}, false, "pressure"},
      {"a size asked for", machine(12 * kGiB, 10 * kGiB), 480 * kMiB, 2 * kGiB, 2 * kGiB, false, ""},
      {"a small size asked for", machine(12 * kGiB, 10 * kGiB), 480 * kMiB, 1 * kMiB, 1 * kMiB, true, ""},
      {"more than is free asked for", machine(12 * kGiB, 1 * kGiB), 480 * kMiB, 2 * kGiB, {}, false, "memory"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const auto set = plan_working_set(row.memory, row.llc, row.requested);
    REQUIRE(set.ok() == row.size.has_value());
    if (set.ok()) {
      CHECK(set->size == *row.size);
      CHECK(set->cache_inflated == row.cache_inflated);
    } else {
      CHECK(set.error().where == row.reason);
    }
  }
}

TEST_CASE("D25: a machine under memory pressure is left alone") {
  const std::string meminfo =
      "MemTotal: 2000000 kB\nMemAvailable: 300000 kB\nSwapTotal: 1000000 kB\nSwapFree: 200000 kB\n";
  FakeTree tree(
      {{"/proc/meminfo", meminfo},
       {"/proc/pressure/memory",
        "some avg10=12.00 avg60=3.00 avg300=1.00 total=1\nfull avg10=8.00 avg60=2.00 avg300=0.50 total=1\n"}});
  CHECK(plan_working_set(read_memory_facts(tree.root()), 8 * kMiB, std::nullopt).error().where == "pressure");
  // The pressure gone, there is still no free memory: MemAvailable is page cache.
  tree.write("/proc/pressure/memory", "some avg10=0.00 avg60=3.00 avg300=1.00 total=1\n");
  CHECK(plan_working_set(read_memory_facts(tree.root()), 8 * kMiB, std::nullopt).error().where == "memory");
}

TEST_CASE("free memory is what lies above the watermarks of the zones, less the page cache") {
  const std::string zoneinfo =
      "Node 0, zone      DMA\n"
      "  pages free     3840\n        min      33\n        high     49\n        protection: (0, 3018, 7498, 7498)\n"
      "    cpu: 0\n              high:     0\n              high_min: 20\n"
      "Node 0, zone   Normal\n"
      "  pages free     300000\n        min      5000\n        high     9000\n        protection: (0, 0, 0, 1000)\n"
      "    cpu: 0\n              high:     4242\n"
      "Node 0, zone  Movable\n"
      "  pages free     0\n        high     0\n        protection: (0, 0, 0, 0)\n";
  const FakeTree tree({{"/proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 1215360 kB\nMemAvailable: 7000000 kB\n"},
                       {"/proc/zoneinfo", zoneinfo}});
  // All of DMA stays, and 10000 pages of Normal.
  const Bytes page = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
  CHECK(read_memory_facts(tree.root()).free == 1215360 * kKiB - (3840 + 10000) * page);
}

TEST_CASE("memory limits of control groups, versions 1 and 2") {
  struct Row {
    std::string name;
    std::map<std::string, std::string> files;
    std::optional<Bytes> room;
  };
  const std::vector<Row> rows = {
      {"none", {}, {}},
      {"version 2, page cache counts as used",
       {{"/sys/fs/cgroup/memory.max", "1000000\n"}, {"/sys/fs/cgroup/memory.current", "400000\n"}},
       Bytes{600000}},
      {"version 2 without a limit",
       {{"/sys/fs/cgroup/memory.max", "max\n"}, {"/sys/fs/cgroup/memory.current", "400000\n"}},
       {}},
      {"memory.high is the tighter one",
       {{"/sys/fs/cgroup/memory.max", "1000000\n"},
        {"/sys/fs/cgroup/memory.high", "500000\n"},
        {"/sys/fs/cgroup/memory.current", "400000\n"}},
       Bytes{100000}},
      {"over the limit", {{"/sys/fs/cgroup/memory.max", "10\n"}, {"/sys/fs/cgroup/memory.current", "20\n"}}, Bytes{0}},
      {"version 1, a parent's limit",
       {{"/proc/self/cgroup", "4:memory:/pod/engine\n"},
        {"/sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "3000\n"},
        {"/sys/fs/cgroup/memory/pod/memory.usage_in_bytes", "1000\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n"}},
       Bytes{2000}},
      {"version 2 next to version 1",
       {{"/sys/fs/cgroup/unified/memory.max", "700\n"}, {"/sys/fs/cgroup/unified/memory.current", "0\n"}},
       Bytes{700}},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const FakeTree tree(row.files);
    CHECK(read_memory_facts(tree.root()).cgroup_room == row.room);
  }
}

TEST_CASE("huge pages are asked for as far as free blocks of their size are there") {
  const FakeTree tree;
  tree.write("/proc/buddyinfo",
             "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n"
             "Node 0, zone   Normal      2      1      3      2     94    333    228     73     16      2    381 \n");
  CHECK(read_memory_facts(tree.root()).free_in_huge_pages == 0);
  const Bytes page = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
  tree.write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", std::to_string(512 * page) + "\n");
  CHECK(read_memory_facts(tree.root()).free_in_huge_pages == (1 * 512 + 3 * 1024 + 2 * 512 + 381 * 1024) * page);
}

TEST_CASE("every CPU's last cache counts, of whatever level") {
  const auto cache = [](std::map<std::string, std::string>& files, int cpu, int level, const char* size,
                        const char* shared) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(level);
    files[folder + "/size"] = size;
    files[folder + "/level"] = std::to_string(level) + "\n";
    files[folder + "/type"] = "Unified\n";
    if (shared != nullptr) files[folder + "/shared_cpu_list"] = shared;
  };
  std::map<std::string, std::string> low_power;  // two cores with a third level, two without
  for (const int cpu : {0, 1}) cache(low_power, cpu, 3, "24M\n", "0-1\n");
  for (const int cpu : {2, 3}) cache(low_power, cpu, 2, "2048K\n", "2-3\n");
  CHECK(read_llc_bytes(FakeTree(low_power).root()) == 26 * kMiB);

  std::map<std::string, std::string> fourth_level;  // one for all, smaller than the third ones together
  for (const int cpu : {0, 1}) {
    cache(fourth_level, cpu, 3, "98304K\n", cpu == 0 ? "0\n" : "1\n");
    cache(fourth_level, cpu, 4, "128M\n", "0-1\n");
  }
  CHECK(read_llc_bytes(FakeTree(fourth_level).root()) == 192 * kMiB);

  std::map<std::string, std::string> unshared;  // told apart by their numbers only; a size of nothing is none
  for (const int cpu : {0, 1, 2}) cache(unshared, cpu, 3, cpu == 2 ? "0\n" : "8M\n", nullptr);
  for (const int cpu : {0, 1}) {
    unshared["/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index3/id"] = std::to_string(cpu) + "\n";
  }
  CHECK(read_llc_bytes(FakeTree(unshared).root()) == 16 * kMiB);
}

TEST_CASE("memory has to be free on every node that is to read it") {
  const std::string nodes = "/sys/devices/system/node/node";
  const FakeTree tree({{"/sys/devices/system/cpu/online", "0-3\n"},
                       {"/sys/devices/system/node/has_memory", "0-1,3\n"},
                       {nodes + "0/cpulist", "0-1\n"},
                       {nodes + "1/cpulist", "2\n"},
                       {nodes + "2/cpulist", "3\n"},
                       {nodes + "3/cpulist", "\n"},
                       {nodes + "0/meminfo", "Node 0 MemTotal: 6400 kB\nNode 0 MemFree: 5000 kB\n"},
                       {nodes + "1/meminfo", "Node 1 MemTotal: 6400 kB\nNode 1 MemFree: 1100 kB\n"},
                       {nodes + "2/meminfo", "Node 2 MemTotal: 0 kB\nNode 2 MemFree: 0 kB\n"},
                       {nodes + "3/meminfo", "Node 3 MemTotal: 6400 kB\nNode 3 MemFree: 6400 kB\n"}});
  const Topology topology = read_topology(tree.root(), std::nullopt);
  CHECK(topology.memory_nodes == std::vector<int>{0, 1, 3});
  MemoryFacts memory;
  memory.free = kGiB;
  limit_to_nodes(memory, tree.root(), topology);
  // Node 1 has 1000 kB beyond its reserve for one of four CPUs; node 2 has none of its own.
  CHECK(memory.free == 4000 * kKiB);
}
