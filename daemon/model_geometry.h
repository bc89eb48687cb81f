// From a model's path to the geometry that the ledger bills with.

#pragma once

#include "collectors/server/identity.h"
#include "metrics/base/result.h"
#include "metrics/base/units.h"
#include "metrics/geometry.h"

#include <memory>
#include <optional>
#include <string>

namespace rooflined::daemon {

struct GeometryOptions {
  std::string kv_cache_type;  // "T" or "K,V"; empty: f16
  std::optional<Bytes> served_bytes;
  std::optional<double> weight_bits;  // of a weight as the engine holds it, where it converts at load
};

// `served_bytes`: all tensors of the model as its server counts them; a file that holds another amount is another model
// of the same name, and refused. The error is one line.
Result<std::shared_ptr<const Geometry>> load_geometry(const std::string& model_path, const GeometryOptions& options);

// From the built-in catalogue of published models; nullptr where the name is not in it, or its weights are not known.
std::shared_ptr<const Geometry> catalogue_geometry(const std::string& hub_name, const GeometryOptions& options);

// From what the server itself tells; nullptr where that is too little. Ollama's description is a whole tensor table.
// llama.cpp's two numbers are the weights, and no cache: taken as dense, unless the catalogue has a model of that name
// with as many parameters, whose shape then holds.
std::shared_ptr<const Geometry> told_geometry(const server::ServerIdentity& identity, const server::ServedModel& served,
                                              const GeometryOptions& options);
// The same of the one base model; nullptr where there is none or are several.
std::shared_ptr<const Geometry> told_geometry(const server::ServerIdentity& identity, const GeometryOptions& options);

// The same without a cache: bytes per token are not known.
std::shared_ptr<const Geometry> without_cache(const std::shared_ptr<const Geometry>& geometry);

}  // namespace rooflined::daemon
