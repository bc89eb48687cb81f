#include "collectors/ceiling/conditions.h"

#include "collectors/ceiling/identity.h"
#include "tests/collectors/ceiling/fake_tree.h"
#include "tests/support/catch.h"

#include <string>

using namespace rooflined;
using namespace rooflined::ceiling;

TEST_CASE("D21: the share of time that the host took") {
  const auto before = parse_cpu_times("cpu 1000 0 500 9000 0 0 0 0 0 0\n");
  const auto after = parse_cpu_times("cpu 1400 0 520 9000 0 0 0 180 0 0\n");
  REQUIRE(before);
  REQUIRE(after);
  CHECK(steal_share(*before, *after) == Approx(0.3));
  CHECK(steal_share(*after, *before) == 0);
  CHECK(steal_share(*before, *before) == 0);
}

TEST_CASE("processor time that is not there") {
  CHECK_FALSE(parse_cpu_times(""));
  CHECK_FALSE(parse_cpu_times("cpu0 1 2 3 4\nintr 5\n"));
  REQUIRE(parse_cpu_times("cpu  7 1\n"));  // before Linux 2.6 lines were shorter
  CHECK(parse_cpu_times("cpu  7 1\n")->busy == 8);
  CHECK(parse_cpu_times("intr 1\ncpu x y z\n")->busy == 0);
}

TEST_CASE("load, pressure and reclaim") {
  const FakeTree tree({{"/proc/loadavg", "7.50 3.10 1.00 2/345 678\n"},
                       {"/proc/pressure/cpu", "some avg10=2.98 avg60=1.51 avg300=0.91 total=9677997\n"},
                       {"/proc/vmstat",
                        "nr_free_pages 1\npgsteal_kswapd 5\npgsteal_direct 7\npgsteal_khugepaged 1000\n"
                        "compact_stall 11\ncompact_stall_more 100\n"}});
  const Conditions conditions = read_conditions(tree.root());
  CHECK(conditions.load1 == Approx(7.5));
  CHECK(conditions.cpu_pressure_avg10 == Approx(2.98));
  CHECK(conditions.reclaim_events == 23);
  const Conditions nothing = read_conditions(FakeTree().root());
  CHECK(nothing.load1 == 0);
  CHECK(nothing.reclaim_events == 0);
}

TEST_CASE("which machine this is") {
  const FakeTree tree(
      {{"/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2.0 GHz\nprocessor\t: 1\nmodel name\t: x\n"},
       {"/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"},
       {"/proc/meminfo", "MemTotal:       24683656 kB\n"}});
  const MachineIdentity identity = read_identity(tree.root());
  CHECK(identity.cpu_model == "Some CPU @ 2.0 GHz");
  CHECK(identity.kernel_release == "6.1.0-18-amd64");
  CHECK(identity.memory_bytes == 24683656 * kKiB);
  CHECK(identity.llc_bytes == 0);

  const FakeTree arm({{"/proc/cpuinfo", "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0b\n"},
                      {"/sys/firmware/devicetree/base/model", std::string("Some Board 5\0", 13)}});
  CHECK(read_identity(arm.root()).cpu_model == "arm 0x41/0xd0b Some Board 5");
  CHECK(read_identity(FakeTree().root()).cpu_model == "unknown");
}

TEST_CASE("a machine is the same while model, kernel, caches and about the memory are") {
  const MachineIdentity base = {"cpu", "6.1", 64 * kGiB, 32 * kMiB};
  CHECK(same_machine(base, base));
  auto other = base;
  other.memory_bytes = 64 * kGiB - 40 * kMiB;
  CHECK(same_machine(base, other));
  CHECK(same_machine(other, base));
  other.memory_bytes = 56 * kGiB;  // a module of eight lost
  CHECK_FALSE(same_machine(base, other));
  other = base;
  other.kernel_release = "6.2";
  CHECK_FALSE(same_machine(base, other));
  other = base;
  other.cpu_model = "other";
  CHECK_FALSE(same_machine(base, other));
  other = base;
  other.llc_bytes = 0;
  CHECK_FALSE(same_machine(base, other));
}
