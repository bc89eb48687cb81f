// A snapshot with something in every field, and a small one, for the tests of the exporter.

#pragma once

#include "metrics/snapshot.h"

#include <cstdint>
#include <string>

namespace rooflined {

// `seed` varies the figures, as those of different targets vary.
TargetSnapshot sample_target(const std::string& name, const std::string& model, std::uint64_t seed);
// Two targets, one of them gone; a measured ceiling; all collectors up.
Snapshot sample_snapshot();

}  // namespace rooflined
