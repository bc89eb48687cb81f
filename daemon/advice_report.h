// Rankings of quantisation formats for people and as JSON: one table per measurement. Threads: any.

#pragma once

#include "metrics/format_advice.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace rooflined::daemon {

struct Advice {
  std::string core;
  std::string evidence;  // in words
  std::string source;    // empty where there are no measurements
  std::vector<FormatMeasurement> measurements;
  std::vector<std::string> notes;
};

nlohmann::ordered_json advice_json(const Advice& advice);
std::string advice_text(const Advice& advice, bool markdown);

}  // namespace rooflined::daemon
