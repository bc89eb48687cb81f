// A measurement of the ceiling as a table for people.

#pragma once

#include "collectors/ceiling/measure.h"
#include "metrics/base/units.h"

#include <string>

namespace rooflined::daemon {

std::string gigabytes_per_second(BytesPerSecond rate);

// Every cell, the working set, the ceiling or why there is none, the memory nodes where several were measured,
// warnings.
std::string measurement_table(const ceiling::Measurement& measured);

}  // namespace rooflined::daemon
