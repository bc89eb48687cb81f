// Geometry that the settings of a target say, in place of what its model does.
//
// The keys are those of `rooflined inspect --json`. Pure function.

#pragma once

#include "config/config.h"
#include "metrics/geometry.h"

#include <memory>
#include <string>

namespace rooflined::daemon {

// nullptr where `found` is and the settings do not say what a pass reads. `warning` is one line where a setting could
// not be applied, else empty. `settings` may be nullptr.
std::shared_ptr<const Geometry> override_geometry(std::shared_ptr<const Geometry> found,
                                                  const config::TargetConfig* settings, std::string& warning);

}  // namespace rooflined::daemon
