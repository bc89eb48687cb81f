// How far measurements of a Cortex-A76 speak for a machine: the very machine, the same core design, a relative, or not
// at all. Pure; threads: any.

#pragma once

#include <string>
#include <string_view>

namespace rooflined::daemon {

enum class Evidence { kExact, kSameCore, kRelated, kNone };

struct CoreEvidence {
  Evidence level = Evidence::kNone;
  std::string core;  // what was recognised, or what the system calls the processor
};

// `cpu_model` as ceiling::MachineIdentity has it: "arm 0x41/0xd0b Raspberry Pi 5 Model B Rev 1.0".
CoreEvidence evidence_of_cpu(std::string_view cpu_model);

// A core by its name, "cortex-a76": nothing of this host is looked at.
CoreEvidence evidence_of_core(std::string_view name);

// "measured on this very machine" and so on.
std::string_view evidence_words(Evidence level);

}  // namespace rooflined::daemon
