#include "daemon/model_geometry.h"

#include "collectors/model/gguf_model.h"
#include "collectors/model/model_file.h"

#include <utility>

namespace rooflined::daemon {

Result<std::shared_ptr<const Geometry>> load_geometry(const std::string& model_path, const std::string& kv_cache_type) {
  auto types = model::parse_kv_cache_types(kv_cache_type.empty() ? "f16" : kv_cache_type);
  if (!types) return types.error();
  const auto file = model::read_gguf(model_path);
  if (!file) return file.error();
  std::optional<Geometry> geometry = model::make_geometry(*file, *types);
  if (!geometry) {
    return Error{ErrorCode::kUnsupported, model_path,
                 "the weights of architecture " + file->architecture + " are not known"};
  }
  return std::make_shared<const Geometry>(std::move(*geometry));
}

}  // namespace rooflined::daemon
