#include "daemon/core_evidence.h"

#include <array>

namespace rooflined::daemon {
namespace {

struct Core {
  std::string_view part;  // "CPU part" of implementer 0x41, Arm
  std::string_view name;
  Evidence level;
};

// MIDR_EL1 part numbers of the technical reference manuals. The A76AE is the A76 with lockstep, the Neoverse N1 its
// server design; the A77 succeeds it.
constexpr std::array<Core, 4> kCores = {{
    {"0xd0b", "cortex-a76", Evidence::kSameCore},
    {"0xd0e", "cortex-a76ae", Evidence::kRelated},
    {"0xd0c", "neoverse-n1", Evidence::kRelated},
    {"0xd0d", "cortex-a77", Evidence::kRelated},
}};

}  // namespace

CoreEvidence evidence_of_cpu(std::string_view cpu_model) {
  constexpr std::string_view kArm = "arm 0x41/";
  if (cpu_model.starts_with(kArm)) {
    const std::string_view rest = cpu_model.substr(kArm.size());
    for (const Core& core : kCores) {
      if (!rest.starts_with(core.part)) continue;
      const bool same_board =
          core.level == Evidence::kSameCore && rest.find("Raspberry Pi 5") != std::string_view::npos;
      return {same_board ? Evidence::kExact : core.level, std::string(core.name)};
    }
  }
  return {Evidence::kNone, std::string(cpu_model)};
}

CoreEvidence evidence_of_core(std::string_view name) {
  for (const Core& core : kCores) {
    if (core.name == name) return {core.level, std::string(name)};
  }
  return {Evidence::kNone, std::string(name)};
}

std::string_view evidence_words(Evidence level) {
  switch (level) {
    case Evidence::kExact:
      return "measured on this machine's model";
    case Evidence::kSameCore:
      return "measured on another machine with this core design";
    case Evidence::kRelated:
      return "measured on a related core design: an extrapolation";
    case Evidence::kNone:
      break;
  }
  return "nothing was measured on this core design";
}

}  // namespace rooflined::daemon
