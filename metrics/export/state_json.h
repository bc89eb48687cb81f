// The snapshot as one JSON object: the fields are called as the members of metrics/snapshot.h, and a key is missing
// where the optional is empty or the number is not finite. Arrays by an enumeration become objects by its names, times
// are seconds since 1970, a histogram carries its `bounds`. As in a scrape, a target that is gone and a capture that is
// down have no windows. Thread rule: any; never throws.

#pragma once

#include "metrics/snapshot.h"

#include <string>
#include <string_view>

namespace rooflined::metrics_export {

std::string state_json(const Snapshot& snapshot, std::string_view version);

// The last minutes of each target that is not retired, as arrays in the order of `fields`.
std::string history_json(const Snapshot& snapshot);

}  // namespace rooflined::metrics_export
