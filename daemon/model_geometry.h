// From a model's path to the geometry that the ledger bills with.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/units.h"
#include "metrics/geometry.h"

#include <memory>
#include <optional>
#include <string>

namespace rooflined::daemon {

// `kv_cache_type` is "T" or "K,V"; empty: f16. `served_bytes`: all tensors of the model as its server counts them; a
// file that holds another amount is another model of the same name, and refused. The error is one line.
Result<std::shared_ptr<const Geometry>> load_geometry(const std::string& model_path, const std::string& kv_cache_type,
                                                      std::optional<Bytes> served_bytes = std::nullopt);

}  // namespace rooflined::daemon
