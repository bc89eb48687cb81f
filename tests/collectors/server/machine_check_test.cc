#include "collectors/server/machine_check.h"

#include "tests/support/catch.h"

#include <vector>

using namespace rooflined;
using namespace rooflined::server;

TEST_CASE("a fall is the machine's where the memory, or what else reads it, fell as much") {
  const auto at = [](int minutes) { return LineTime(std::chrono::minutes(minutes)); };
  const DeployChange fell{0.8, 0.76, 0.84, 20};
  const DeployChange other_fell{0.82, 0.78, 0.86, 20};
  const DeployChange other_stayed{0.99, 0.95, 1.03, 20};
  const std::vector<MemoryReading> steady = {{at(1), 40e9}, {at(2), 39e9}};
  const std::vector<MemoryReading> restless = {{at(1), 40e9}, {at(2), 34e9}, {at(3), 39e9}};
  const auto with = [&](MemoryReading reading) {
    auto readings = restless;
    readings.push_back(reading);
    return readings;
  };
  struct Row {
    const char* name;
    std::vector<MemoryReading> readings;
    std::vector<DeployChange> beside;
    int now;
    MachineVerdict verdict;
  };
  const Row rows[] = {
      {"nothing is known of the memory", {}, {}, 110, MachineVerdict::kServer},
      {"it was measured once", {{at(1), 40e9}}, {}, 110, MachineVerdict::kServer},
      {"it is always the same", steady, {other_fell}, 110, MachineVerdict::kServer},
      {"it is not, and nobody has looked", restless, {}, 110, MachineVerdict::kWaiting},
      {"nobody could look for long", restless, {}, 121, MachineVerdict::kServer},
      {"measured since: as much less", with({at(105), 31e9}), {}, 110, MachineVerdict::kMachine},
      {"measured since: as before", with({at(105), 38e9}), {}, 110, MachineVerdict::kServer},
      {"another target fell, too", restless, {other_stayed, other_fell}, 110, MachineVerdict::kMachine},
      {"another target did not", restless, {other_stayed}, 110, MachineVerdict::kServer},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(judge_machine(fell, at(100), at(105), at(row.now), row.readings, row.beside) == row.verdict);
  }
}
