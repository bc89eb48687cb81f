// Whether a target fell because its memory did: deploy-change.md, step 6.
//
// Where the ceiling of a machine is not the same from one measurement to the next, a fall after a deploy may be the
// machine's. Then another measurement is waited for, and targets on the same memory that had no deploy are looked at.
// A pure function.

#pragma once

#include "metrics/base/time.h"
#include "metrics/base/units.h"
#include "metrics/deploy_change.h"

#include <cstdint>
#include <span>

namespace rooflined::server {

struct MemoryReading {
  LineTime at;
  BytesPerSecond rate = 0;
};

enum class MachineVerdict : std::uint8_t {
  kServer,   // the deploy did it
  kWaiting,  // a measurement would tell
  kMachine,  // the memory fell as much
};

// `fell`: what the deploy at `deployed` seems to have done, since `seen`. `readings`: of the memory, oldest first.
// `beside`: what happened to the other targets at that time.
MachineVerdict judge_machine(const DeployChange& fell, LineTime deployed, LineTime seen, LineTime now,
                             std::span<const MemoryReading> readings, std::span<const DeployChange> beside);

}  // namespace rooflined::server
