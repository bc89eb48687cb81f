#include "daemon/model_geometry.h"

#include "collectors/model/model_file.h"
#include "collectors/model/model_reader.h"
#include "metrics/base/log.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace rooflined::daemon {

Result<std::shared_ptr<const Geometry>> load_geometry(const std::string& model_path, const std::string& kv_cache_type,
                                                      std::optional<Bytes> served_bytes) {
  // Servers leave out tensors that they do not use (next-token prediction); another quantisation differs by far more.
  constexpr double kDifferenceMax = 0.1;
  auto types = model::parse_kv_cache_types(kv_cache_type.empty() ? "f16" : kv_cache_type);
  if (!types) return types.error();
  const auto file = model::read_model(model_path);
  if (!file) return file.error();
  if (served_bytes) {
    const double served = static_cast<double>(*served_bytes);
    if (std::abs(static_cast<double>(file->tensor_bytes) - served) > kDifferenceMax * served) {
      return Error{ErrorCode::kInvalid, model_path,
                   fmt::format("holds tensors of {} bytes and the server's model {}: another model of that name",
                               file->tensor_bytes, *served_bytes)};
    }
  }
  std::optional<Geometry> geometry = model::make_geometry(*file, *types);
  if (!geometry) {
    return Error{ErrorCode::kUnsupported, model_path,
                 "the weights of architecture " + file->architecture + " are not known"};
  }
  for (const std::string& warning : file->warnings) log::warning("{}: {}", model_path, warning);
  return std::make_shared<const Geometry>(std::move(*geometry));
}

}  // namespace rooflined::daemon
