// The published Qwen2.5 files in every format of data/facts/gguf_streamed_sizes.csv, written header-only with the
// tensor types that llama-quantize chooses: what a pass streams, how much of the file is the type that its name claims,
// bits per weight.

#include "collectors/model/ggml_types.h"
#include "collectors/model/gguf_model.h"
#include "tests/support/catch.h"
#include "tests/support/fact_rows.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

using namespace rooflined;
using namespace rooflined::model;
using rooflined::test::FactRow;
using rooflined::test::GgufWriter;
using rooflined::test::number;

namespace {

struct Qwen {
  std::uint32_t layers, width, heads, kv_heads, ffn;
};
constexpr Qwen kHalf{24, 896, 14, 2, 4864};
constexpr Qwen kOneHalf{28, 1536, 12, 2, 8960};
constexpr std::uint64_t kVocabulary = 151'936;

// llama.cpp src/llama-quant.cpp, use_more_bits().
bool gets_more_bits(std::uint32_t layer, std::uint32_t layers) {
  const std::uint32_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

// The type that the format's mixture gives to a tensor without an importance matrix, where each KV head serves four
// heads or more (llama_tensor_get_type_impl of the same file).
std::string_view mixed_type(std::string_view format, std::string_view part, std::uint32_t layer, std::uint32_t layers) {
  const bool value = part == "attn_v";
  const bool output = part == "attn_output";
  const bool down = part == "ffn_down";
  if (format == "Q2_K") return value ? "Q4_K" : output || down ? "Q3_K" : "Q2_K";
  if (format == "Q3_K_M") {
    if (value) return layer < 2 ? "Q5_K" : "Q4_K";
    if (down) return layer < layers / 16 ? "Q5_K" : "Q4_K";
    return output ? "Q4_K" : "Q3_K";
  }
  if (format == "Q4_K_M") return (value || down) && gets_more_bits(layer, layers) ? "Q6_K" : "Q4_K";
  if (format.starts_with("IQ4_")) return value || (down && layer < layers / 8) ? "Q5_K" : format;
  return format;
}

// Rows that do not divide into the type's blocks get another type (tensor_type_fallback of the same file).
std::string_view fitting_type(std::string_view type, std::uint64_t row) {
  if (row % ggml_type_by_name(type)->block_elements == 0) return type;
  if (type == "IQ4_XS") return "IQ4_NL";
  if (type == "Q2_K" || type == "Q3_K") return "Q4_0";
  if (type == "Q4_K") return "Q5_0";
  return type == "Q5_K" ? "Q5_1" : "Q8_0";
}

GgufWriter quantised(const Qwen& shape, std::string_view format) {
  const std::uint64_t width = shape.width;
  const std::uint64_t kv_width = width / shape.heads * shape.kv_heads;
  GgufWriter file;
  file.text("general.architecture", "qwen2").u32("qwen2.block_count", shape.layers);
  file.u32("qwen2.embedding_length", shape.width).u32("qwen2.attention.head_count", shape.heads);
  file.u32("qwen2.attention.head_count_kv", shape.kv_heads);
  const std::string_view head = format == "Q8_0" ? "Q8_0" : fitting_type("Q6_K", width);
  file.tensor("token_embd.weight", {width, kVocabulary}, head).tensor("output_norm.weight", {width}, "F32");
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const auto matrix = [&](std::string_view part, std::uint64_t row, std::uint64_t rows) {
      const std::string_view type = fitting_type(mixed_type(format, part, layer, shape.layers), row);
      file.tensor(fmt::format("blk.{}.{}.weight", layer, part), {row, rows}, type);
    };
    const auto vector = [&](std::string_view part, std::uint64_t size) {
      file.tensor(fmt::format("blk.{}.{}", layer, part), {size}, "F32");
    };
    vector("attn_norm.weight", width);
    matrix("attn_q", width, width);
    matrix("attn_k", width, kv_width);
    matrix("attn_v", width, kv_width);
    vector("attn_q.bias", width);
    vector("attn_k.bias", kv_width);
    vector("attn_v.bias", kv_width);
    matrix("attn_output", width, width);
    vector("ffn_norm.weight", width);
    matrix("ffn_gate", width, shape.ffn);
    matrix("ffn_up", width, shape.ffn);
    matrix("ffn_down", shape.ffn, width);
  }
  return file;
}

}  // namespace

TEST_CASE("published files stream what was published, and are what their names claim to that extent") {
  constexpr double kMiB = 1024 * 1024;
  const TemporaryFolder folder;
  std::size_t files = 0;
  for (const FactRow& row : test::fact_rows(ROOFLINED_TEST_DATA, "gguf_streamed_sizes")) {
    const std::string path = fmt::format("{}/{}-{}.gguf", folder.path(), row.at("model"), row.at("format"));
    INFO(path);
    quantised(row.at("model") == "Qwen2.5-0.5B" ? kHalf : kOneHalf, row.at("format")).write(path);
    const auto model = read_gguf(path);
    REQUIRE(model.ok());
    ++files;
    // The table has one digit of a MiB, one of a percentage, two of bits.
    CHECK(static_cast<double>(model->streamed_bytes) / kMiB == Approx(number(row, "parser_MiB")).margin(0.0501));
    REQUIRE(model->on_label_share.has_value());
    CHECK(100 * *model->on_label_share == Approx(number(row, "on_label_pct")).margin(0.0501));
    CHECK(*model->bits_per_weight == Approx(number(row, "bits_per_weight")).margin(0.00501));
  }
  CHECK(files == 14);
}
