#include "daemon/model_geometry.h"

#include "collectors/model/catalogue.h"
#include "collectors/model/model_file.h"
#include "collectors/model/model_reader.h"
#include "collectors/model/ollama_show.h"
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

std::shared_ptr<const Geometry> shared_of(model::ModelFile& file, const GeometryOptions& options, const char* source) {
  const Result<model::KvCacheTypes> types = cache_types(options);
  if (!types) return nullptr;
  std::optional<Geometry> geometry = geometry_of(file, *types, options);
  if (!geometry) return nullptr;
  geometry->source = source;
  return std::make_shared<const Geometry>(std::move(*geometry));
}

std::shared_ptr<const Geometry> described_geometry(const std::string& description, const GeometryOptions& options) {
  Result<model::ModelFile> file = model::describe_ollama_show(description);
  if (!file) {
    log::warning("{}", file.error().message());
    return nullptr;
  }
  for (const std::string& warning : file->warnings) log::warning("/api/show: {}", warning);
  return shared_of(*file, options, "server");
}

// Its weights of one width each: the mean of what the server counts.
std::shared_ptr<const Geometry> counted_geometry(const server::ServedModel& served, const GeometryOptions& options) {
  constexpr double kDifferenceMax = 0.01;
  const double bytes = static_cast<double>(*served.tensor_bytes);
  const double parameters = static_cast<double>(served.parameters.value_or(0));
  std::optional<model::ModelFile> shape = model::catalogue_model_of_file(served.id);
  if (shape && parameters > 0 &&
      std::abs(shape->parameters_total - parameters) <= kDifferenceMax * shape->parameters_total) {
    log::info("{}: shape from the built-in catalogue, bytes as its server counts them", served.id);
    model::scale_weights(*shape, 8 * bytes / parameters);
    GeometryOptions counted = options;
    counted.weight_bits.reset();
    return shared_of(*shape, counted, "server");
  }
  // All tensors, the embedding table included: a little high.
  auto geometry = std::make_shared<Geometry>();
  geometry->dense_bytes = bytes;
  geometry->kv_known = false;
  geometry->source = "server";
  return geometry;
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
  std::optional<model::ModelFile> file = model::catalogue_model(hub_name);
  return file ? shared_of(*file, options, "catalogue") : nullptr;
}

std::shared_ptr<const Geometry> told_geometry(const server::ServerIdentity& identity, const server::ServedModel& served,
                                              const GeometryOptions& options) {
  if (const auto description = identity.descriptions.find(served.id); description != identity.descriptions.end()) {
    if (auto described = described_geometry(description->second, options)) return described;
  }
  return served.tensor_bytes ? counted_geometry(served, options) : nullptr;
}

std::shared_ptr<const Geometry> told_geometry(const server::ServerIdentity& identity, const GeometryOptions& options) {
  const server::ServedModel* served = identity.base_model();
  return served != nullptr ? told_geometry(identity, *served, options) : nullptr;
}

std::shared_ptr<const Geometry> without_cache(const std::shared_ptr<const Geometry>& geometry) {
  if (geometry == nullptr) return nullptr;
  auto partial = std::make_shared<Geometry>(*geometry);
  partial->kv_known = false;
  partial->kv_groups.clear();
  partial->state_bytes_per_sequence = 0;
  return partial;
}

}  // namespace rooflined::daemon
