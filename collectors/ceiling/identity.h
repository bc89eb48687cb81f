// Which machine a ceiling belongs to: results of another machine, or of this one after it changed, are not compared.
//
// Threads: any.

#pragma once

#include "metrics/base/units.h"

#include <string>

namespace rooflined::ceiling {

struct MachineIdentity {
  std::string cpu_model;
  std::string kernel_release;
  Bytes memory_bytes = 0;
  Bytes llc_bytes = 0;  // 0 when unknown
};

MachineIdentity read_identity(const std::string& root);

// Memory may differ by 2 %: what the kernel keeps for itself varies with its version and options by less than that, and
// the smallest share that a lost module takes, one of 24, is twice as much.
bool same_machine(const MachineIdentity& a, const MachineIdentity& b);

}  // namespace rooflined::ceiling
