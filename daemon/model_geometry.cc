#include "daemon/model_geometry.h"

#include "collectors/model/catalogue.h"
#include "collectors/model/model_file.h"
#include "collectors/model/model_reader.h"
#include "metrics/base/log.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace rooflined::daemon {

namespace {

std::optional<Geometry> geometry_of(model::ModelFile& file, const model::KvCacheTypes& types,
                                    const GeometryOptions& options) {
  if (options.weight_bits) model::convert_weights(file, *options.weight_bits);
  return model::make_geometry(file, types);
}

Result<model::KvCacheTypes> cache_types(const GeometryOptions& options) {
  return model::parse_kv_cache_types(options.kv_cache_type.empty() ? "f16" : options.kv_cache_type);
}

}  // namespace

Result<std::shared_ptr<const Geometry>> load_geometry(const std::string& model_path, const GeometryOptions& options) {
  // Servers leave out tensors that they do not use (next-token prediction); another quantisation differs by far more.
  constexpr double kDifferenceMax = 0.1;
  const Result<model::KvCacheTypes> types = cache_types(options);
  if (!types) return types.error();
  auto file = model::read_model(model_path);
  if (!file) return file.error();
  if (options.served_bytes && file->tensor_bytes > 0) {
    const double served = static_cast<double>(*options.served_bytes);
    if (std::abs(static_cast<double>(file->tensor_bytes) - served) > kDifferenceMax * served) {
      return Error{ErrorCode::kInvalid, model_path,
                   fmt::format("holds tensors of {} bytes and the server's model {}: another model of that name",
                               file->tensor_bytes, *options.served_bytes)};
    }
  }
  std::optional<Geometry> geometry = geometry_of(*file, *types, options);
  if (!geometry) {
    return Error{ErrorCode::kUnsupported, model_path,
                 "the weights of architecture " + file->architecture + " are not known"};
  }
  for (const std::string& warning : file->warnings) log::warning("{}: {}", model_path, warning);
  return std::make_shared<const Geometry>(std::move(*geometry));
}

std::shared_ptr<const Geometry> catalogue_geometry(const std::string& hub_name, const GeometryOptions& options) {
  const Result<model::KvCacheTypes> types = cache_types(options);
  std::optional<model::ModelFile> file = model::catalogue_model(hub_name);
  if (!types || !file) return nullptr;
  std::optional<Geometry> geometry = geometry_of(*file, *types, options);
  if (!geometry) return nullptr;
  geometry->source = "catalogue";
  return std::make_shared<const Geometry>(std::move(*geometry));
}

}  // namespace rooflined::daemon
