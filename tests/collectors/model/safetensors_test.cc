// Checkpoints in safetensors files: sound and broken folders from the field (data/safetensors), and the layouts that
// quantisers write.

#include "collectors/model/hf_folder.h"
#include "collectors/model/hf_model.h"
#include "collectors/model/safetensors_header.h"
#include "collectors/model/safetensors_tensors.h"
#include "tests/support/catch.h"
#include "tests/support/containing.h"

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::model;
using rooflined::test::containing;
namespace fs = std::filesystem;

namespace {

Result<ModelFile> read(const std::string& name) {
  return read_hf(std::string(ROOFLINED_TEST_DATA) + "/safetensors/" + name);
}

std::string refusal(const std::string& name) {
  const Result<ModelFile> model = read(name);
  return model ? "read" : model.error().message();
}

// A file with that header, and as many bytes of data as its tensors say.
std::string with_header(const std::string& header, std::size_t data_bytes) {
  std::string file;
  for (unsigned byte = 0; byte < 8; ++byte) file += static_cast<char>((header.size() >> (8 * byte)) & 0xFFU);
  return file + header + std::string(data_bytes, '\0');
}

std::string fault(const std::string& file) {
  MemorySource source(std::as_bytes(std::span(file)));
  const auto summary = read_safetensors_header(source, "m", [](const SafetensorsTensor&) {});
  return summary ? "read" : summary.error().detail;
}

// Writes tensors of given types and shapes, one after the other.
class CheckpointWriter {
 public:
  CheckpointWriter& tensor(const std::string& name, const std::string& type, const std::vector<std::uint64_t>& shape) {
    std::uint64_t bits = bits_of_safetensors_type(type);
    std::string dimensions;
    for (const std::uint64_t dimension : shape) {
      bits *= dimension;
      dimensions += (dimensions.empty() ? "" : ",") + std::to_string(dimension);
    }
    header_ += (header_.empty() ? "{\"" : ",\"") + name + R"(":{"dtype":")" + type + R"(","shape":[)" + dimensions +
               R"(],"data_offsets":[)" + std::to_string(end_) + "," + std::to_string(end_ + bits / 8) + "]}";
    end_ += bits / 8;
    return *this;
  }
  std::string file() const { return with_header(header_ + "}", end_); }

 private:
  std::string header_;
  std::uint64_t end_ = 0;
};

class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / ("rooflined-hf-" + std::to_string(getpid()))).string()) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& content) const {
    fs::create_directories(fs::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }

 private:
  std::string path_;
};

// Two layers, hidden 64, four experts of 32 in the second one.
const std::string kMixed =
    R"({"model_type":"deepseek_v3","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,
  "num_attention_heads":2,"kv_lora_rank":16,"qk_nope_head_dim":16,"qk_rope_head_dim":8,"v_head_dim":16,"vocab_size":256,
  "n_routed_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":32,"first_k_dense_replace":1,"n_shared_experts":1,
  "tie_word_embeddings":false,"torch_dtype":"bfloat16")";

}  // namespace

TEST_CASE("sound folders give the bytes that their files hold") {
  for (const char* name : {"plain", "tied_no_head", "duplicate_copies_in_subdirs", "consolidated_and_model"}) {
    INFO(name);
    const auto model = read(name);
    REQUIRE(model.ok());
    CHECK(model->weights_known);
    CHECK(model->dense_bytes == 640);
    CHECK(model->head_bytes == 512);
    CHECK(model->files == 1);
  }
  CHECK(read("plain")->tensor_bytes == 1152);
  CHECK(read("tied_no_head")->tied_embeddings);
  const auto packed = read("packed_int4");
  REQUIRE(packed.ok());
  CHECK(packed->dense_bytes == 592);
  CHECK(packed->parameters_total == 1024);
  const auto unknown = read("unknown_dtype");
  REQUIRE(unknown.ok());
  CHECK(unknown->tensor_bytes == 48);
  CHECK(unknown->warnings.front() == containing("F3_X"));
}

TEST_CASE("broken folders are refused by what is wrong with them") {
  CHECK(refusal("header_len_past_eof") == containing("truncated"));
  CHECK(refusal("offsets_overlap_hole") == containing("overlap"));
  CHECK(refusal("offsets_missing") == containing("data_offsets"));
  CHECK(refusal("metadata_only_and_not_object") == containing("no tensors"));
  CHECK(refusal("shard_missing") == containing("model-00002-of-00002.safetensors is missing"));
}

TEST_CASE("broken headers") {
  CHECK(fault("1234567") == containing("truncated"));
  CHECK(fault(std::string(8, '\xFF')) == containing("not a safetensors file"));
  CHECK(fault(with_header("[]", 0)) == containing("not a JSON object"));
  CHECK(fault(with_header("7", 0)) == containing("not a JSON object"));
  CHECK(fault(with_header("{", 0)) == containing("not JSON"));
  CHECK(fault(with_header("{}", 0)) == containing("no tensors"));
  CHECK(fault(with_header(R"({"a":5})", 0)) == containing("a is not an object"));
  CHECK(fault(with_header(R"({"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,7]}})", 7)) ==
        containing("not 7 bytes"));
  CHECK(fault(with_header(R"({"a":{"dtype":"BF16","shape":[-4],"data_offsets":[0,8]}})", 8)) == containing("negative"));
  CHECK(fault(with_header(R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"
                          R"("b":{"dtype":"I8","shape":[2],"data_offsets":[4,6]}})",
                          6)) == containing("a hole at byte 2"));
  CHECK(fault(with_header(R"({"a":{"dtype":"I8","shape":[[2]],"data_offsets":[0,2]}})", 2)) == containing("nested"));
  CHECK(fault(with_header(
            R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2],"x":{}}}  )", 0)) ==
        "read");
}

TEST_CASE("experts, shared ones, scales, next-token layers and an encoder are told apart by name") {
  Folder folder;
  folder.write("config.json",
               kMixed + R"(,"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}})");
  CheckpointWriter file;
  file.tensor("model.embed_tokens.weight", "BF16", {256, 64}).tensor("lm_head.weight", "BF16", {256, 64});
  file.tensor("model.layers.0.self_attn.o_proj.weight", "F8_E4M3", {64, 32});
  file.tensor("model.layers.0.self_attn.o_proj.weight_scale_inv", "F32", {1, 1});
  file.tensor("model.layers.0.mlp.up_proj.weight", "F8_E4M3", {128, 64});
  for (const int expert : {0, 1, 2, 3}) {
    file.tensor("model.layers.1.mlp.experts." + std::to_string(expert) + ".up_proj.weight", "F8_E4M3", {32, 64});
    file.tensor("model.layers.1.mlp.experts." + std::to_string(expert) + ".up_proj.weight_scale_inv", "F32", {1, 1});
  }
  file.tensor("model.layers.1.mlp.shared_experts.up_proj.weight", "F8_E4M3", {32, 64});
  file.tensor("model.layers.1.mlp.gate.weight", "BF16", {4, 64}).tensor("model.norm.weight", "BF16", {64});
  file.tensor("model.layers.2.embed_tokens.weight", "BF16", {256, 64});
  file.tensor("vision_tower.blocks.0.attn.weight", "BF16", {64, 64});
  folder.write("model.safetensors", file.file());
  const auto model = read_hf(folder.path());
  REQUIRE(model.ok());
  const Bytes head = 256 * 64 * 2;
  CHECK(model->head_bytes == head);
  CHECK(model->dense_bytes == head + 64 * 32 + 4 + 128 * 64 + 32 * 64 + 4 * 64 * 2 + 64 * 2);
  REQUIRE(model->expert_layers.size() == 1);
  CHECK(model->expert_layers[0].experts == 4);
  CHECK(model->expert_layers[0].experts_per_token == 2);
  CHECK(model->expert_layers[0].bytes_per_expert == 32 * 64 + 4);
  CHECK(model->expert_layers[0].parameters_per_expert == 32 * 64);
  CHECK(model->parameters_total == 2 * 256 * 64 + 64 * 32 + 128 * 64 + 4 * 32 * 64 + 32 * 64 + 4 * 64 + 64);
  CHECK(model->kv_known);
  CHECK(model->kv_layers.at(0).key_elements == 24);
}

TEST_CASE("packed weights count as many parameters as they hold") {
  struct Row {
    const char* name;
    const char* type;
    std::vector<std::uint64_t> shape;
    double bits;
    double parameters;
  };
  const std::vector<Row> rows = {
      {"model.layers.0.mlp.up_proj.qweight", "I32", {8, 64}, 4, 8 * 64 * 8},
      {"model.layers.0.mlp.up_proj.qzeros", "I32", {2, 8}, 4, 0},
      {"model.layers.0.mlp.up_proj.scales", "F16", {2, 64}, 4, 0},
      {"model.layers.0.mlp.up_proj.g_idx", "I32", {64}, 4, 0},
      {"model.layers.0.mlp.up_proj.weight_packed", "I32", {16, 16}, 8, 16 * 16 * 4},
      {"model.layers.0.mlp.experts.gate_up_proj_blocks", "U8", {4, 8, 2, 16}, 4, 2 * 4 * 8 * 2 * 16},
      {"model.layers.0.mlp.experts.gate_up_proj_scales", "U8", {4, 8, 2}, 4, 0},
      {"model.layers.0.mlp.up_proj.weight", "U8", {64, 32}, 4, 2 * 64 * 32},
      {"model.layers.0.mlp.up_proj.weight", "F8_E4M3", {64, 32}, 8, 64 * 32},
      {"model.layers.0.mlp.up_proj.weight_scale_2", "F32", {}, 4, 0},
      {"model.layers.0.mlp.up_proj.weight.absmax", "U8", {32}, 4, 0},
      {"model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4", "U8", {80}, 4, 0},
      {"model.layers.0.mlp.up_proj.bias", "BF16", {64}, 4, 64},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    SafetensorsTensor tensor{row.name, row.type, row.shape, 1, 0};
    for (const std::uint64_t dimension : row.shape) tensor.elements *= static_cast<double>(dimension);
    CHECK(checkpoint_parameters(tensor, row.bits) == row.parameters);
  }
}

TEST_CASE("a checkpoint in 32 bit is said to be one, and counts as what the engine makes of it where that is told") {
  Folder folder;
  folder.write("config.json",
               R"({"model_type":"llama","hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,
                   "num_attention_heads":2,"vocab_size":32,"torch_dtype":"float32"})");
  CheckpointWriter file;
  file.tensor("model.embed_tokens.weight", "F32", {32, 8}).tensor("lm_head.weight", "F32", {32, 8});
  file.tensor("model.layers.0.mlp.up_proj.weight", "F32", {16, 8});
  folder.write("model.safetensors", file.file());
  auto model = read_hf(folder.path());
  REQUIRE(model.ok());
  CHECK(model->stored_wide);
  CHECK(model->dense_bytes == 4 * (256 + 128));
  convert_weights(*model, 8);
  CHECK_FALSE(model->stored_wide);
  CHECK(model->dense_bytes == 2 * 256 + 128);
}

TEST_CASE("which files are the model") {
  Folder folder;
  folder.write("config.json", "{}");
  SECTION("none") {
    CHECK(safetensors_files(folder.path())->empty());
  }
  SECTION("shards without an index, all of them") {
    folder.write("model-00001-of-00002.safetensors", "");
    CHECK_FALSE(safetensors_files(folder.path()).ok());
    folder.write("model-00002-of-00002.safetensors", "");
    CHECK(safetensors_files(folder.path())->size() == 2);
  }
  SECTION("consolidated files only where there is nothing else") {
    folder.write("consolidated.safetensors", "");
    CHECK(safetensors_files(folder.path())->size() == 1);
    folder.write("model.safetensors", "");
    CHECK(safetensors_files(folder.path())->at(0) == containing("/model.safetensors"));
  }
  SECTION("two that nothing tells apart") {
    folder.write("a.safetensors", "");
    folder.write("b.safetensors", "");
    CHECK_FALSE(safetensors_files(folder.path()).ok());
  }
  SECTION("an index names files of its own folder only") {
    folder.write("model.safetensors.index.json", R"({"weight_map":{"a":"../../etc/passwd"}})");
    CHECK_FALSE(safetensors_files(folder.path()).ok());
  }
}

TEST_CASE("a hub cache: the snapshot that refs/main names, else the only one") {
  Folder folder;
  const std::string cache = folder.path() + "/models--org--name";
  folder.write("models--org--name/snapshots/aaa/config.json", "{}");
  CHECK(snapshot_folder(cache) == cache + "/snapshots/aaa");
  folder.write("models--org--name/snapshots/bbb/config.json", "{}");
  folder.write("models--org--name/refs/main", "aaa\n");
  CHECK(snapshot_folder(cache) == cache + "/snapshots/aaa");
  CHECK(snapshot_folder(folder.path()) == folder.path());
}
