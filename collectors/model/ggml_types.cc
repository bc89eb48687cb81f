#include "collectors/model/ggml_types.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace rooflined::model {
namespace {

constexpr std::array<GgmlType, 43> kTypes = {{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {4, "Q4_2", 0, 0},        {5, "Q4_3", 0, 0},        {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},         {25, "I16", 1, 2},        {26, "I32", 1, 4},        {27, "I64", 1, 8},
    {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {31, "Q4_0_4_4", 0, 0},
    {32, "Q4_0_4_8", 0, 0},   {33, "Q4_0_8_8", 0, 0},   {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},
    {36, "IQ4_NL_4_4", 0, 0}, {37, "IQ4_NL_4_8", 0, 0}, {38, "IQ4_NL_8_8", 0, 0}, {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
}};

constexpr std::array<std::string_view, 9> kKvCacheTypes = {"F32",  "F16",  "BF16", "Q8_0",  "Q5_1",
                                                           "Q5_0", "Q4_1", "Q4_0", "IQ4_NL"};

// What vLLM, SGLang and TensorRT-LLM call theirs (`--kv-cache-dtype`); a scale for a tensor or a head is next to
// nothing.
constexpr std::uint32_t kNoId = UINT32_MAX;
constexpr std::array<GgmlType, 11> kEngineCacheTypes = {{
    {kNoId, "fp8", 1, 1},
    {kNoId, "fp8_e4m3", 1, 1},
    {kNoId, "fp8_e5m2", 1, 1},
    {kNoId, "fp8_inc", 1, 1},
    {kNoId, "float8_e4m3fn", 1, 1},
    {kNoId, "int8", 1, 1},
    {kNoId, "nvfp4", 16, 9},  // SGLang's fp4_e2m1 and vLLM's: 16 values and one byte of scale
    {kNoId, "fp4_e2m1", 16, 9},
    {kNoId, "fp8_ds_mla", 576, 656},  // vLLM's for a latent of 512 and 64: scales in 32 bit, the rotated part in 16
    {kNoId, "bfloat16", 1, 2},
    {kNoId, "float16", 1, 2},
}};

// llama.h, enum llama_ftype; the gaps were removed from the format.
constexpr std::array<std::pair<std::uint64_t, std::string_view>, 34> kFileTypes = {{
    {0, "F32"},     {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},    {7, "Q8_0"},       {8, "Q5_0"},    {9, "Q5_1"},
    {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"},  {13, "Q3_K_L"}, {14, "Q4_K_S"},    {15, "Q4_K_M"}, {16, "Q5_K_S"},
    {17, "Q5_K_M"}, {18, "Q6_K"},   {19, "IQ2_XXS"}, {20, "IQ2_XS"}, {21, "Q2_K_S"},    {22, "IQ3_XS"}, {23, "IQ3_XXS"},
    {24, "IQ1_S"},  {25, "IQ4_NL"}, {26, "IQ3_S"},   {27, "IQ3_M"},  {28, "IQ2_S"},     {29, "IQ2_M"},  {30, "IQ4_XS"},
    {31, "IQ1_M"},  {32, "BF16"},   {36, "TQ1_0"},   {37, "TQ2_0"},  {38, "MXFP4_MOE"}, {39, "NVFP4"},
}};

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return upper(x) == upper(y); });
}

}  // namespace

std::span<const GgmlType> ggml_types() {
  return kTypes;
}

const GgmlType* ggml_type(std::uint32_t id) {
  static_assert(kTypes.back().id + 1 == kTypes.size(), "the table is indexed by id");
  return id < kTypes.size() ? &kTypes[id] : nullptr;
}

const GgmlType* ggml_type_by_name(std::string_view name) {
  for (const GgmlType& type : kTypes) {
    if (!type.removed() && equal_without_case(type.name, name)) return &type;
  }
  return nullptr;
}

const GgmlType* kv_cache_type(std::string_view name) {
  for (const std::string_view known : kKvCacheTypes) {
    if (equal_without_case(known, name)) return ggml_type_by_name(known);
  }
  for (const GgmlType& type : kEngineCacheTypes) {
    if (equal_without_case(type.name, name)) return &type;
  }
  return nullptr;
}

std::string_view file_type_label(std::uint64_t file_type) {
  for (const auto& [number, label] : kFileTypes) {
    if (number == file_type) return label;
  }
  return {};
}

}  // namespace rooflined::model
