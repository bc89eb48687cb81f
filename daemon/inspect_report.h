// What `rooflined inspect` prints: the JSON object of design.md §5, and a table for people.

#pragma once

#include "collectors/model/model_file.h"
#include "metrics/base/units.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rooflined::daemon {

struct InspectOptions {
  double batch = 1;
  double context = 4096;
  model::KvCacheTypes kv_cache_types;
  std::optional<BytesPerSecond> bandwidth;  // set: tokens/s that it would allow
};

// What is not known is null, and a warning says why.
nlohmann::ordered_json inspect_json(const model::ModelFile& model, const InspectOptions& options);

// The same figures as lines of text.
std::string inspect_table(const model::ModelFile& model, const InspectOptions& options);

// Several models side by side, one on a line. `names` go with `models`.
std::string inspect_comparison(const std::vector<std::string>& names, const std::vector<model::ModelFile>& models,
                               const InspectOptions& options);

}  // namespace rooflined::daemon
