#include "collectors/model/model_file.h"

#include "metrics/base/utf8.h"

#include <fmt/format.h>

namespace rooflined::model {
namespace {

Result<const GgmlType*> cache_type(std::string_view name) {
  if (const GgmlType* type = kv_cache_type(name)) return type;
  return Error{ErrorCode::kInvalid, "kv cache type",
               fmt::format("\"{}\" is none of {}", to_label(name, 32), kKvCacheTypeNames)};
}

}  // namespace

Result<KvCacheTypes> parse_kv_cache_types(std::string_view text) {
  const std::size_t comma = text.find(',');
  const Result<const GgmlType*> key = cache_type(text.substr(0, comma));
  if (!key) return key.error();
  if (comma == std::string_view::npos) return KvCacheTypes{*key, *key};
  const Result<const GgmlType*> value = cache_type(text.substr(comma + 1));
  if (!value) return value.error();
  return KvCacheTypes{*key, *value};
}

std::optional<Geometry> make_geometry(const ModelFile& model, const KvCacheTypes& types) {
  if (!model.weights_known) return std::nullopt;
  Geometry geometry;
  geometry.source = "file";
  geometry.architecture = model.architecture;
  geometry.dense_bytes = static_cast<double>(model.dense_bytes);
  geometry.head_bytes = static_cast<double>(model.head_bytes);
  for (const ExpertLayers& group : model.expert_layers) {
    geometry.expert_groups.push_back({group.layers, group.experts, group.experts_per_token, group.bytes_per_expert});
  }
  geometry.kv_known = model.kv_known;
  if (!model.kv_known) return geometry;
  geometry.state_bytes_per_sequence = model.state_bytes_per_sequence;
  for (const KvLayers& group : model.kv_layers) {
    const double bytes = static_cast<double>(group.key_elements) * types.key->bytes_per_element() +
                         static_cast<double>(group.value_elements) * types.value->bytes_per_element();
    geometry.kv_groups.push_back({group.layers, bytes, group.window});
  }
  return geometry;
}

}  // namespace rooflined::model
