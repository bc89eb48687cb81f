#include "collectors/server/machine_check.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace rooflined::server {
namespace {

// A ceiling that kept within this is no suspect.
constexpr double kSpreadMax = 1.10;
// A server that is never idle leaves no window to measure in; its users wait for an answer.
constexpr Duration kWaitMax = std::chrono::minutes(15);

}  // namespace

MachineVerdict judge_machine(const DeployChange& fell, LineTime deployed, LineTime seen, LineTime now,
                             std::span<const MemoryReading> readings, std::span<const DeployChange> beside) {
  std::vector<BytesPerSecond> before;
  for (const MemoryReading& reading : readings) {
    if (reading.at < deployed && reading.rate > 0) before.push_back(reading.rate);
  }
  std::sort(before.begin(), before.end());
  if (before.size() < 2 || before.back() <= kSpreadMax * before.front()) return MachineVerdict::kServer;
  const bool others_fell =
      std::any_of(beside.begin(), beside.end(), [&](const DeployChange& other) { return other.ratio <= fell.high; });
  if (others_fell) return MachineVerdict::kMachine;
  if (!readings.empty() && readings.back().at >= deployed) {
    // Against the second highest, as the adopted ceiling is.
    const BytesPerSecond usual = before[before.size() - 2];
    return readings.back().rate <= fell.high * usual ? MachineVerdict::kMachine : MachineVerdict::kServer;
  }
  if (!beside.empty() || now - seen > kWaitMax) return MachineVerdict::kServer;
  return MachineVerdict::kWaiting;
}

}  // namespace rooflined::server
