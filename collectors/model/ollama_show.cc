#include "collectors/model/ollama_show.h"

#include "collectors/model/gguf_model.h"
#include "collectors/model/hf_config.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rooflined::model {
namespace {

using nlohmann::json;
using Value = GgufMetadata::Value;

constexpr GgufLimits kLimits{};

std::optional<Value> value_of(const json& told) {
  if (told.is_boolean()) return Value::of(told.get<bool>());
  if (told.is_number_unsigned()) return Value::of(told.get<std::uint64_t>());
  if (told.is_number_integer()) return Value::of(told.get<std::int64_t>());
  if (const auto* text = told.get_ptr<const json::string_t*>()) {
    if (text->size() > kLimits.text_bytes_kept_max) return std::nullopt;
    return Value::of(*text);
  }
  if (!told.is_array() || told.empty() || told.size() > kLimits.array_elements_kept_max) return Value{};
  std::vector<std::int64_t> elements;
  for (const json& each : told) {
    if (!each.is_number_integer() && !each.is_boolean()) return Value{};
    elements.push_back(each.is_boolean() ? each.get<bool>() : each.get<std::int64_t>());
  }
  return Value::of(std::move(elements));
}

GgufMetadata metadata_of(const json& info) {
  GgufMetadata metadata;
  std::uint64_t keys = 0;
  for (const auto& [key, told] : info.items()) {
    if (key.size() > kLimits.key_bytes_max || ++keys > kLimits.keys_max) continue;
    if (auto value = value_of(told)) metadata.add(key, std::move(*value));
  }
  return metadata;
}

// nullopt: not of the shape that a file's table has.
std::optional<GgufTensor> tensor_of(const json& told) {
  if (!told.is_object()) return std::nullopt;
  const auto text = [&](const char* key) {
    const auto found = told.find(key);
    return found != told.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  GgufTensor tensor;
  tensor.name = text("name");
  tensor.type = ggml_type_by_name(text("type"));
  const auto shape = told.find("shape");
  if (tensor.name.empty() || tensor.name.size() > kLimits.tensor_name_bytes_max || tensor.type == nullptr ||
      shape == told.end() || !shape->is_array() || shape->size() > tensor.dimensions.size()) {
    return std::nullopt;
  }
  tensor.elements = 1;
  for (const json& dimension : *shape) {
    if (!dimension.is_number_unsigned()) return std::nullopt;
    const auto size = dimension.get<std::uint64_t>();
    tensor.dimensions[tensor.dimension_count++] = size;
    if (__builtin_mul_overflow(tensor.elements, size, &tensor.elements)) return std::nullopt;
  }
  if (tensor.dimensions[0] % tensor.type->block_elements != 0 ||
      __builtin_mul_overflow(tensor.elements / tensor.type->block_elements, Bytes{tensor.type->block_bytes},
                             &tensor.bytes)) {
    return std::nullopt;
  }
  return tensor;
}

// All of them, or none: a sum that leaves some out is no sum.
std::vector<GgufTensor> tensors_of(const json& list) {
  std::vector<GgufTensor> tensors;
  if (!list.is_array() || list.size() > kLimits.tensors_max) return tensors;
  Bytes all = 0;
  for (const json& told : list) {
    std::optional<GgufTensor> tensor = tensor_of(told);
    if (!tensor || __builtin_add_overflow(all, tensor->bytes, &all) || all > Bytes{1} << 62U) return {};
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

}  // namespace

Result<ModelFile> describe_ollama_show(std::string_view body) {
  const std::string name = "/api/show";
  const Result<json> answer = parse_config_json(body, name);
  if (!answer) return answer.error();
  const auto info = answer->find("model_info");
  if (info == answer->end() || !info->is_object()) {
    return Error{ErrorCode::kInvalid, name, "the answer has no object \"model_info\""};
  }
  GgufShard told;
  told.header.metadata = metadata_of(*info);
  if (const auto list = answer->find("tensors"); list != answer->end()) told.header.tensors = tensors_of(*list);
  return describe_gguf(std::span<const GgufShard>(&told, 1), "");
}

}  // namespace rooflined::model
