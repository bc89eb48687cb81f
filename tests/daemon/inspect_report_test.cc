// The JSON that `rooflined inspect` prints: names and values that other tools read.

#include "daemon/inspect_report.h"
#include "collectors/model/gguf_model.h"
#include "tests/support/catch.h"
#include "tests/support/containing.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::daemon;
using rooflined::test::containing;
using rooflined::test::GgufWriter;

namespace {

model::ModelFile written(const GgufWriter& file, const std::string& name) {
  const TemporaryFolder folder;
  file.write(folder.path() + "/" + name, GgufWriter::Data::kSparse);
  Result<model::ModelFile> model = model::read_gguf(folder.path() + "/" + name);
  REQUIRE(model.ok());
  return std::move(*model);
}

// The model of the recorded captures: its figures are known from outside.
GgufWriter captured_model() {
  GgufWriter file;
  file.text("general.architecture", "llama").u32("llama.block_count", 16).u32("llama.embedding_length", 2048);
  file.u32("llama.attention.head_count", 32).u32("llama.attention.head_count_kv", 8);
  file.tensor("token_embd.weight", {2048, 32000}, "Q8_0").tensor("output.weight", {2048, 32000}, "Q8_0");
  file.tensor("output_norm.weight", {2048}, "F32");
  for (int layer = 0; layer < 16; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    file.tensor(block + "attn_norm.weight", {2048}, "F32").tensor(block + "ffn_norm.weight", {2048}, "F32");
    file.tensor(block + "attn_q.weight", {2048, 2048}, "Q8_0").tensor(block + "attn_k.weight", {2048, 512}, "Q8_0");
    file.tensor(block + "attn_v.weight", {2048, 512}, "Q8_0")
        .tensor(block + "attn_output.weight", {2048, 2048}, "Q8_0");
    file.tensor(block + "ffn_gate.weight", {2048, 5632}, "Q8_0").tensor(block + "ffn_up.weight", {2048, 5632}, "Q8_0");
    file.tensor(block + "ffn_down.weight", {5632, 2048}, "Q8_0");
  }
  return file;
}

}  // namespace

TEST_CASE("a dense model") {
  InspectOptions options;
  options.batch = 4;
  options.context = 100;
  const auto json = inspect_json(written(captured_model(), "dense-q8_0.gguf"), options);
  CHECK(json["format"] == "gguf");
  CHECK(json["architecture"] == "llama");
  CHECK(json["parameters_total"] == 852'559'872);
  CHECK(json["parameters_active"] == 852'559'872);
  CHECK(json["tied_embeddings"] == false);
  CHECK(json["dense_bytes_per_pass"] == 836'411'392);
  CHECK(json["head_bytes"] == 69'632'000);
  CHECK(json["moe_layers"] == 0);
  CHECK(json["experts"] == 0);
  CHECK(json["experts_per_token"] == 0);
  CHECK(json["expert_bytes"] == 0);
  CHECK(json["bytes_per_pass"] == 836'411'392);
  CHECK(json["kv_bytes_per_token"] == 32'768);
  CHECK(json["kv_bytes_read"] == 3'276'800);
  CHECK(json["state_bytes_per_sequence"] == 0);
  CHECK(json["streamed_bytes"] == 836'411'392);
  CHECK(json["tensor_bytes"] == 906'043'392);
  CHECK(json["composition"].size() == 1);
  CHECK(json["composition"][0]["type"] == "Q8_0");
  CHECK(json["composition"][0]["share"] == 1.0);
  CHECK(json["on_label_share"] == 1.0);
  CHECK(json["bits_per_weight"] == 8.5);
  CHECK(json["warnings"].empty());
  CHECK(json["bytes_per_pass"].is_number_integer());
}

TEST_CASE("a mixture of experts at two batches") {
  GgufWriter file;
  file.text("general.architecture", "qwen3moe").u32("qwen3moe.block_count", 2).u32("qwen3moe.embedding_length", 64);
  file.u32("qwen3moe.attention.head_count", 4).u32("qwen3moe.expert_used_count", 2);
  file.tensor("token_embd.weight", {64, 96}, "F16");
  for (const char* block : {"blk.0.", "blk.1."}) {
    file.tensor(std::string(block) + "ffn_gate_inp.weight", {64, 8}, "F32");
    file.tensor(std::string(block) + "ffn_up_exps.weight", {64, 32, 8}, "Q8_0");
  }
  const model::ModelFile model = written(file, "m.gguf");
  const double dense = 64 * 96 * 2 + 2 * 64 * 8 * 4;
  InspectOptions options;
  auto json = inspect_json(model, options);
  CHECK(json["moe_layers"] == 2);
  CHECK(json["experts"] == 8);
  CHECK(json["experts_per_token"] == 2);
  CHECK(json["expert_bytes"] == 2176);
  CHECK(json["bytes_per_pass"] == dense + 2 * 2 * 2176);
  CHECK(json["streamed_bytes"] == dense + 2 * 8 * 2176);
  CHECK(json["parameters_total"].get<double>() - json["parameters_active"].get<double>() == 2 * 6 * 64 * 32);
  options.batch = 2;
  json = inspect_json(model, options);
  CHECK(json["bytes_per_pass"].get<double>() == Approx(dense + 2 * 8 * (1 - 0.75 * 0.75) * 2176));
  CHECK(inspect_table(model, options) == containing("8 experts, 2 for each token, in 2 layers"));
}

TEST_CASE("what is not known is null, with a warning") {
  GgufWriter file;
  file.text("general.architecture", "mamba").u32("mamba.ssm.state_size", 16).u32("mamba.block_count", 1);
  file.tensor("blk.0.ssm_in.weight", {64, 64}, "F16");
  const auto json = inspect_json(written(file, "m.gguf"), {});
  CHECK(json["dense_bytes_per_pass"].is_null());
  CHECK(json["bytes_per_pass"].is_null());
  CHECK(json["kv_bytes_per_token"].is_null());
  CHECK(json["kv_bytes_read"].is_null());
  CHECK(json["on_label_share"].is_null());
  CHECK(json["warnings"].size() == 2);
}

TEST_CASE("the table names the figures") {
  InspectOptions options;
  options.kv_cache_types = *model::parse_kv_cache_types("q8_0,f16");
  const std::string table = inspect_table(written(captured_model(), "m-Q4_K_M.gguf"), options);
  CHECK(table == containing("836.4 MB at batch 1 (output head 69.6 MB, 8.3 %)"));
  CHECK(table == containing("25088 B for a token (q8_0,f16); 102.8 MB read at a context of 4096"));
  CHECK(table == containing("Q4_K_M: 0.0 % of the repeating layers' bytes"));
  CHECK(table == containing("8.50"));
}
