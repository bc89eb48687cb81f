#include "collectors/model/model_file.h"

#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

Bytes whole_bytes(double bytes) {
  constexpr double kMax = 4611686018427387904.0;  // 2^62
  return bytes > 0 ? static_cast<Bytes>(std::min(std::round(bytes), kMax)) : 0;
}

void add_kv_layers(std::vector<KvLayers>& groups, const KvLayers& one) {
  for (KvLayers& group : groups) {
    if (group.key_elements == one.key_elements && group.value_elements == one.value_elements &&
        group.window == one.window && group.chunk == one.chunk && group.index_elements == one.index_elements) {
      group.layers += one.layers;
      return;
    }
  }
  groups.push_back(one);
}

void add_expert_layers(std::vector<ExpertLayers>& groups, const ExpertLayers& one) {
  for (ExpertLayers& group : groups) {
    if (group.experts == one.experts && group.experts_per_token == one.experts_per_token &&
        group.bytes_per_expert == one.bytes_per_expert && group.parameters_per_expert == one.parameters_per_expert) {
      group.layers += one.layers;
      return;
    }
  }
  groups.push_back(one);
}

namespace {

void set_weights(ModelFile& model, double bits, double head_bits) {
  if (!model.weights_known) return;
  const double head = model.head_parameters * head_bits / 8;
  const double dense = (model.dense_parameters - model.head_parameters) * bits / 8 + head;
  double streamed = dense;
  for (ExpertLayers& group : model.expert_layers) {
    group.bytes_per_expert = group.parameters_per_expert * bits / 8;
    streamed += static_cast<double>(group.layers * group.experts) * group.bytes_per_expert;
  }
  model.head_bytes = whole_bytes(head);
  model.dense_bytes = whole_bytes(dense);
  model.streamed_bytes = whole_bytes(streamed);
  model.stored_wide = false;
}

}  // namespace

void convert_weights(ModelFile& model, double bits) {
  constexpr double kHeadBits = 16;
  set_weights(model, bits, kHeadBits);
}

void scale_weights(ModelFile& model, double bits) {
  set_weights(model, bits, bits);
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
  geometry.converted = model.stored_wide;
  if (!model.kv_known) return geometry;
  geometry.state_bytes_per_sequence = model.state_bytes_per_sequence;
  for (const KvLayers& group : model.kv_layers) {
    const double bytes =
        group.key_elements * types.key->bytes_per_element() + group.value_elements * types.value->bytes_per_element();
    geometry.kv_groups.push_back(
        {group.layers, bytes, group.window, group.chunk, group.index_elements * types.key->bytes_per_element()});
  }
  return geometry;
}

}  // namespace rooflined::model
