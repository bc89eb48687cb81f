// From a model's path to the geometry that the ledger bills with.

#pragma once

#include "metrics/base/result.h"
#include "metrics/geometry.h"

#include <memory>
#include <string>

namespace rooflined::daemon {

// `kv_cache_type` is "T" or "K,V"; empty: f16. The error is one line: what, where, what would be right.
Result<std::shared_ptr<const Geometry>> load_geometry(const std::string& model_path, const std::string& kv_cache_type);

}  // namespace rooflined::daemon
