// What `rooflined inspect` prints: the JSON object of design.md §5, and a table for people.

#pragma once

#include "collectors/model/model_file.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace rooflined::daemon {

struct InspectOptions {
  double batch = 1;
  double context = 4096;
  model::KvCacheTypes kv_cache_types;
};

// What is not known is null, and a warning says why.
nlohmann::ordered_json inspect_json(const model::ModelFile& model, const InspectOptions& options);

// The same figures as lines of text.
std::string inspect_table(const model::ModelFile& model, const InspectOptions& options);

}  // namespace rooflined::daemon
