// Models written for the test, whole in every tensor name and shape: published byte counts come out exactly.

#include "collectors/model/gguf_model.h"
#include "tests/support/catch.h"
#include "tests/support/containing.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::model;
using rooflined::test::containing;
using rooflined::test::GgufWriter;

namespace {

class Folder : public TemporaryFolder {
 public:
  std::string file(const std::string& name) const { return path() + "/" + name; }
};

struct Qwen {
  std::string_view name;
  std::uint32_t layers, width, heads, kv_heads, ffn;
};
constexpr Qwen kQwenHalf{"Qwen2.5-0.5B", 24, 896, 14, 2, 4864};
constexpr Qwen kQwenOneHalf{"Qwen2.5-1.5B", 28, 1536, 12, 2, 8960};

// As convert_hf_to_gguf.py and llama-quantize lay out Qwen2: head tied, biases and norms in F32.
GgufWriter qwen(const Qwen& shape, std::string_view type, std::string_view head_type) {
  const std::uint64_t width = shape.width;
  const std::uint64_t kv_width = width / shape.heads * shape.kv_heads;
  GgufWriter file;
  file.text("general.architecture", "qwen2").text("general.name", shape.name);
  file.u32("qwen2.block_count", shape.layers).u32("qwen2.embedding_length", shape.width);
  file.u32("qwen2.attention.head_count", shape.heads).u32("qwen2.attention.head_count_kv", shape.kv_heads);
  file.tensor("token_embd.weight", {width, 151936}, head_type).tensor("output_norm.weight", {width}, "F32");
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}", layer, part); };
    file.tensor(name("attn_norm.weight"), {width}, "F32").tensor(name("ffn_norm.weight"), {width}, "F32");
    file.tensor(name("attn_q.weight"), {width, width}, type).tensor(name("attn_q.bias"), {width}, "F32");
    file.tensor(name("attn_k.weight"), {width, kv_width}, type).tensor(name("attn_k.bias"), {kv_width}, "F32");
    file.tensor(name("attn_v.weight"), {width, kv_width}, type).tensor(name("attn_v.bias"), {kv_width}, "F32");
    file.tensor(name("attn_output.weight"), {width, width}, type);
    file.tensor(name("ffn_gate.weight"), {width, shape.ffn}, type);
    file.tensor(name("ffn_up.weight"), {width, shape.ffn}, type);
    file.tensor(name("ffn_down.weight"), {shape.ffn, width}, type);
  }
  return file;
}

ModelFile read(const std::string& path) {
  Result<ModelFile> model = read_gguf(path);
  INFO(path << ": " << (model ? std::string() : model.error().message()));
  REQUIRE(model.ok());
  return std::move(*model);
}

// A tiny MoE file whose layers are alike.
GgufWriter moe(std::string_view architecture, std::uint32_t layers) {
  GgufWriter file;
  const std::string arch(architecture);
  file.text("general.architecture", arch).u32(arch + ".block_count", layers).u32(arch + ".embedding_length", 64);
  file.u32(arch + ".attention.head_count", 4).u32(arch + ".expert_count", 8).u32(arch + ".expert_used_count", 2);
  file.tensor("token_embd.weight", {64, 96}, "F16").tensor("output.weight", {64, 96}, "F16");
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    file.tensor(fmt::format("blk.{}.ffn_gate_inp.weight", layer), {64, 8}, "F32");
    file.tensor(fmt::format("blk.{}.exp_probs_b.bias", layer), {8}, "F32");
    file.tensor(fmt::format("blk.{}.ffn_up_shexp.weight", layer), {64, 32}, "Q8_0");
    file.tensor(fmt::format("blk.{}.ffn_up_exps.weight", layer), {64, 32, 8}, layer == 0 ? "Q8_0" : "Q4_0");
    file.tensor(fmt::format("blk.{}.ffn_up_exps.bias", layer), {32, 8}, "F32");
  }
  return file;
}

}  // namespace

TEST_CASE("streamed bytes of published Qwen2.5 files, exactly") {
  struct Row {
    Qwen shape;
    const char* type;
    const char* head;
    Bytes streamed;
    double parameters;
    double kv;
  };
  const Folder folder;
  for (const Row& row : {
           Row{kQwenHalf, "Q4_0", "Q8_0", 346'206'720, 494'032'768, 12'288},
           Row{kQwenHalf, "Q8_0", "Q8_0", 525'120'000, 494'032'768, 12'288},
           Row{kQwenOneHalf, "Q4_0", "Q6_K", 929'004'032, 1'543'714'304, 28'672},
           Row{kQwenOneHalf, "Q8_0", "Q8_0", 1'640'622'080, 1'543'714'304, 28'672},
       }) {
    const std::string path = folder.file(fmt::format("{}-{}.gguf", row.shape.name, row.type));
    INFO(path);
    qwen(row.shape, row.type, row.head).write(path);
    const ModelFile model = read(path);
    CHECK(model.streamed_bytes == row.streamed);
    CHECK(model.dense_bytes == row.streamed);
    CHECK(make_geometry(model)->weight_bytes(1).total() == static_cast<double>(row.streamed));
    CHECK(model.parameters_total == row.parameters);
    CHECK(model.parameters_active == row.parameters);
    CHECK(model.tied_embeddings);
    CHECK(make_geometry(model)->kv_bytes_per_token() == row.kv);
    CHECK(model.label == row.type);
    CHECK(model.on_label_share == 1.0);
    CHECK(model.bits_per_weight == Approx(std::string_view(row.type) == "Q8_0" ? 8.5 : 4.5));
    CHECK(model.cut);
    REQUIRE(model.warnings.size() == 1);
    CHECK(model.warnings.front() == containing("cut:"));
  }
}

TEST_CASE("a stored second copy of a tied head is read once") {
  const Folder folder;
  qwen(kQwenOneHalf, "Q8_0", "Q8_0").tensor("output.weight", {1536, 151936}, "Q8_0").write(folder.file("m.gguf"));
  const ModelFile model = read(folder.file("m.gguf"));
  CHECK_FALSE(model.tied_embeddings);
  CHECK(model.streamed_bytes == 1'640'622'080);
}

TEST_CASE("a whole file has no warning, a cut one says by how much") {
  const Folder folder;
  const std::string path = folder.file("whole.gguf");
  qwen(kQwenHalf, "Q8_0", "Q8_0").write(path, GgufWriter::Data::kSparse);
  ModelFile model = read(path);
  CHECK(model.warnings.empty());
  CHECK(model.file_bytes == std::filesystem::file_size(path));
  CHECK(model.tensor_bytes == 525'120'000);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  model = read(path);
  CHECK(model.cut);
  CHECK(model.warnings.front() == containing(" 1 bytes"));
}

TEST_CASE("shards add up, whichever is named") {
  const Folder folder;
  const auto shard = [&](int number) { return folder.file(fmt::format("m-Q8_0-{:05}-of-00002.gguf", number)); };
  GgufWriter first;
  first.text("general.architecture", "llama").u32("llama.block_count", 1).u32("llama.embedding_length", 64);
  first.u32("llama.attention.head_count", 4).u16("split.no", 0).u16("split.count", 2).i32("split.tensors.count", 3);
  first.tensor("token_embd.weight", {64, 96}, "F16").tensor("output.weight", {64, 96}, "F16");
  first.write(shard(1), GgufWriter::Data::kSparse);
  GgufWriter second;
  second.u16("split.no", 1).u16("split.count", 2).i32("split.tensors.count", 3);
  second.tensor("blk.0.attn_q.weight", {64, 64}, "Q8_0");
  second.write(shard(2), GgufWriter::Data::kSparse);

  for (const int named : {1, 2}) {
    const ModelFile model = read(shard(named));
    CHECK(model.files == 2);
    CHECK(model.dense_bytes == 64 * 96 * 2 + 64 * 64 / 32 * 34);
    CHECK(model.file_bytes == std::filesystem::file_size(shard(1)) + std::filesystem::file_size(shard(2)));
    CHECK(model.architecture == "llama");
    CHECK(model.warnings.empty());
  }

  SECTION("a missing one is named") {
    std::filesystem::remove(shard(1));
    CHECK(read_gguf(shard(2)).error().message() == containing("missing shard 1 of 2"));
  }
  SECTION("a renamed one cannot find the others") {
    std::filesystem::rename(shard(1), folder.file("model.gguf"));
    CHECK(read_gguf(folder.file("model.gguf")).error().message() == containing("one of 2 shards"));
  }
  SECTION("one of another model in its place") {
    std::filesystem::copy_file(shard(1), shard(2), std::filesystem::copy_options::overwrite_existing);
    CHECK_FALSE(read_gguf(shard(1)).ok());
  }
  SECTION("a table that lost a tensor") {
    GgufWriter empty;
    empty.u16("split.no", 1).write(shard(2));
    CHECK(read_gguf(shard(1)).error().message() == containing("hold 2 tensors, should be 3"));
  }
}

TEST_CASE("merged experts: router and shared experts are dense, layers of different types are different groups") {
  const Folder folder;
  moe("qwen3moe", 3).write(folder.file("m.gguf"));
  const ModelFile model = read(folder.file("m.gguf"));
  const Bytes shared_and_router = 64 * 8 * 4 + 8 * 4 + 64 * 32 / 32 * 34;
  CHECK(model.dense_bytes == 64 * 96 * 2 + 3 * shared_and_router);
  REQUIRE(model.expert_layers.size() == 2);
  CHECK(model.expert_layers[0].layers == 1);
  CHECK(model.expert_layers[0].bytes_per_expert == 64 * 32 / 32 * 34 + 32 * 4);
  CHECK(model.expert_layers[1].layers == 2);
  CHECK(model.expert_layers[1].bytes_per_expert == 64 * 32 / 32 * 18 + 32 * 4);
  CHECK(model.parameters_total - model.parameters_active == 3 * 6 * (64 * 32 + 32));
  const auto geometry = make_geometry(model);
  CHECK(geometry->weight_bytes(1).experts == Approx(2 * (2176 + 128) + 2 * 2 * (1152 + 128)));
  CHECK(geometry->weight_bytes(1e6).total() == Approx(static_cast<double>(model.streamed_bytes)));
}

TEST_CASE("experts whose number cannot be trusted leave the weights unknown") {
  const Folder folder;
  GgufWriter file = moe("qwen3moe", 1);
  file.tensor("blk.0.ffn_down_exps.weight", {32, 64, 4}, "Q8_0").write(folder.file("m.gguf"));
  const ModelFile model = read(folder.file("m.gguf"));
  CHECK_FALSE(model.weights_known);
  CHECK(model.expert_layers.empty());
}

TEST_CASE("KV cache types") {
  const Folder folder;
  qwen(kQwenHalf, "Q8_0", "Q8_0").write(folder.file("m.gguf"));
  const ModelFile model = read(folder.file("m.gguf"));
  const auto bytes = [&](const char* types) {
    return make_geometry(model, *parse_kv_cache_types(types))->kv_bytes_per_token();
  };
  const double elements = 24 * 2 * 64;  // of K, and as many of V
  CHECK(bytes("f16") == elements * 4);
  CHECK(bytes("f32") == elements * 8);
  CHECK(bytes("bf16") == elements * 4);
  CHECK(bytes("q8_0") == Approx(elements * 2 * 34 / 32));
  CHECK(bytes("q4_0") == Approx(elements * 2 * 18 / 32));
  CHECK(bytes("q8_0,f16") == Approx(elements * (34.0 / 32 + 2)));
  CHECK(bytes("F16,iq4_nl") == Approx(elements * (2 + 18.0 / 32)));
  CHECK(parse_kv_cache_types("q8_0,q6_k").error().message() == containing("\"q6_k\" is none of f32"));
  CHECK_FALSE(parse_kv_cache_types("").ok());
  CHECK_FALSE(parse_kv_cache_types("f16,f16,f16").ok());
}

TEST_CASE("labels of file names") {
  CHECK(label_of_file_name("Qwen2.5-0.5B-Instruct-Q4_K_M.gguf") == "Q4_K_M");
  CHECK(label_of_file_name("/models/qwen2.5-0.5b-instruct-q4_0.gguf") == "Q4_0");
  CHECK(label_of_file_name("model_q8_0.gguf") == "Q8_0");
  CHECK(label_of_file_name("m-UD-Q4_K_XL-00001-of-00002.gguf") == "Q4_K_XL");
  CHECK(label_of_file_name("m.IQ4_NL.gguf") == "IQ4_NL");
  CHECK(label_of_file_name("m-IQ3_M.gguf") == "IQ3_M");
  CHECK(label_of_file_name("m-BF16.gguf") == "BF16");
  CHECK(label_of_file_name("gpt-oss-20b-MXFP4.gguf") == "MXFP4");
  CHECK(label_of_file_name("dense-q8.gguf").empty());
  CHECK(label_of_file_name("Q4_0/model.gguf").empty());
  CHECK(type_of_label("Q4_K_M")->name == "Q4_K");
  CHECK(type_of_label("Q3_K_L")->name == "Q3_K");
  CHECK(type_of_label("Q2_K")->name == "Q2_K");
  CHECK(type_of_label("MXFP4_MOE")->name == "MXFP4");
  CHECK(type_of_label("IQ3_M") == nullptr);
  CHECK(type_of_label("") == nullptr);
}

TEST_CASE("composition counts the quantised bytes of the repeating layers") {
  const Folder folder;
  GgufWriter file;
  file.text("general.architecture", "llama").u32("general.file_type", 15);
  file.tensor("output.weight", {256, 96}, "Q6_K").tensor("blk.0.attn_norm.weight", {256}, "F32");
  file.tensor("blk.0.attn_q.weight", {256, 256}, "Q4_K").tensor("blk.0.attn_v.weight", {256, 256}, "Q6_K");
  file.write(folder.file("m.gguf"));
  const ModelFile model = read(folder.file("m.gguf"));
  CHECK(model.label == "Q4_K_M");
  REQUIRE(model.composition.size() == 2);
  CHECK(model.composition[0].type == "Q6_K");
  CHECK(model.composition[1].type == "Q4_K");
  CHECK(model.on_label_share == Approx(144.0 / (144 + 210)));
  CHECK(model.bits_per_weight == Approx((4.5 + 6.5625) / 2));
}
