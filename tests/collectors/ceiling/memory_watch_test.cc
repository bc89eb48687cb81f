// What ends a probe for the sake of others' memory, on a fake /proc that changes between two looks.

#include "collectors/ceiling/memory_watch.h"

#include "tests/collectors/ceiling/fake_tree.h"
#include "tests/support/catch.h"

#include <string>

using namespace rooflined;
using namespace rooflined::ceiling;

namespace {

// One zone of 4 KiB pages: 1,000,000 kB free, 40,000 kB of them below the high watermark.
const std::string kZones =
    "Node 0, zone   Normal\n  pages free     250000\n        high     10000\n  protection: (0, 0)\n";

FakeTree calm_tree() {
  return FakeTree({{"/proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 1000000 kB\nMemAvailable: 6000000 kB\n"},
                   {"/proc/zoneinfo", kZones},
                   {"/proc/vmstat", "pgsteal_kswapd 5\npgsteal_direct 7\ncompact_stall 11\n"},
                   {"/proc/pressure/memory",
                    "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000\n"
                    "full avg10=0.00 avg60=0.00 avg300=0.00 total=900000000\n"}});
}

std::string reason(const MemoryWatch& watch) {
  const Status status = watch.look();
  if (status.ok()) return "";
  CHECK(status.error().code == ErrorCode::kLimit);
  return status.error().where;
}

}  // namespace

TEST_CASE("a probe in free memory goes on") {
  const FakeTree tree = calm_tree();
  const MemoryWatch watch(tree.root());
  CHECK(reason(watch).empty());
  // What it takes itself, and page cache that grows or shrinks by itself.
  tree.write("/proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 40000 kB\nMemAvailable: 3000000 kB\n");
  CHECK(reason(watch).empty());
}

TEST_CASE("each way to cost others their memory ends it") {
  struct Row {
    std::string file, text, reason;
  };
  const Row rows[] = {
      {"/proc/vmstat", "pgsteal_kswapd 6\npgsteal_direct 7\ncompact_stall 11\n", "reclaim"},
      {"/proc/vmstat", "pgsteal_kswapd 5\npgsteal_direct 8\ncompact_stall 11\n", "reclaim"},
      {"/proc/vmstat", "pgsteal_kswapd 5\npgsteal_direct 7\ncompact_stall 12\n", "reclaim"},
      {"/proc/pressure/memory", "some avg10=0.01 avg60=0.00 avg300=0.00 total=15000\n", ""},
      {"/proc/pressure/memory", "some avg10=0.01 avg60=0.00 avg300=0.00 total=15001\n", "pressure"},
      {"/proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 39999 kB\n", "memory"},
  };
  for (const Row& row : rows) {
    const FakeTree tree = calm_tree();
    const MemoryWatch watch(tree.root());
    tree.write(row.file, row.text);
    INFO(row.file << ": " << row.text);
    CHECK(reason(watch) == row.reason);
  }
}

TEST_CASE("a kernel that keeps none of it ends no probe") {
  const FakeTree tree;
  CHECK(reason(MemoryWatch(tree.root())).empty());
}
