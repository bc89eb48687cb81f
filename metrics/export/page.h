// The page for people: one table of the targets and one line about the ceiling, as plain HTML without scripts.
// MBU never stands without tokens/s and inter-token latency, and never reads above 100 %. Thread rule: any.

#pragma once

#include "metrics/snapshot.h"

#include <string>
#include <string_view>

namespace rooflined::metrics_export {

// `snapshot` may be null.
std::string status_page(const Snapshot* snapshot, std::string_view version);

}  // namespace rooflined::metrics_export
