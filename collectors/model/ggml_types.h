// The tensor types of the GGUF format: how many bytes a block of how many elements takes.
//
// Source: ggml include/ggml.h and src/ggml-common.h (August 2026). Types that were removed from the format keep their
// numbers, and are named so that a refusal can say which one it was. Thread rule: constants.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace rooflined::model {

struct GgmlType {
  std::uint32_t id = 0;
  std::string_view name;
  std::uint32_t block_elements = 0;  // 0: removed from the format
  std::uint32_t block_bytes = 0;

  bool removed() const noexcept { return block_elements == 0; }
  double bytes_per_element() const noexcept {
    return static_cast<double>(block_bytes) / static_cast<double>(block_elements);
  }
};

// All of them, ascending by id.
std::span<const GgmlType> ggml_types();
// nullptr: no such type.
const GgmlType* ggml_type(std::uint32_t id);
// Upper and lower case alike; never a removed one.
const GgmlType* ggml_type_by_name(std::string_view name);

// A type that a server can keep its KV cache in ("f16", "q8_0", "fp8_e4m3", …; lower case as the servers spell it).
const GgmlType* kv_cache_type(std::string_view name);
// For messages: the names that kv_cache_type() knows.
inline constexpr std::string_view kKvCacheTypeNames =
    "f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl, fp8, int8, nvfp4";

// What a file says it is: the name of `general.file_type`, as llama.cpp's tools spell it; empty where unknown.
std::string_view file_type_label(std::uint64_t file_type);

}  // namespace rooflined::model
