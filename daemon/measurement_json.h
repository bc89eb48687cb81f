// A measurement of the ceiling as JSON: what `rooflined membw --json` prints, and what a probe reports to its parent.
//
// Values that were not measured are null. Threads: any.

#pragma once

#include "collectors/ceiling/measure.h"
#include "metrics/base/result.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <variant>

namespace rooflined::daemon {

nlohmann::ordered_json to_json(const ceiling::Measurement& measurement);
Result<ceiling::Measurement> measurement_from_json(const nlohmann::ordered_json& json);

// One line of a probe's report: progress (any number), then a measurement or an error.
using ReportItem = std::variant<ceiling::Progress, ceiling::Measurement, Error>;
std::string report_line(const ReportItem& item);
// An error item with kInvalid where the line is not one of those.
ReportItem parse_report_line(std::string_view line);

}  // namespace rooflined::daemon
