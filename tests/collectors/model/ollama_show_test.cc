// Ollama's answers to POST /api/show: metadata and tensors as JSON give what the file itself gives.

#include "collectors/model/ollama_show.h"
#include "collectors/model/gguf_model.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

#include <nlohmann/json.hpp>

#include <string>

using namespace rooflined;
using namespace rooflined::model;
using nlohmann::json;
using rooflined::test::GgufWriter;

namespace {

struct Told {
  GgufWriter file;
  json answer = {{"details", {{"format", "gguf"}, {"quantization_level", "Q8_0"}}}, {"capabilities", {"completion"}}};

  void tensor(const std::string& name, const std::vector<std::uint64_t>& shape, const std::string& type) {
    file.tensor(name, shape, type);
    answer["tensors"].push_back({{"name", name}, {"type", type}, {"shape", shape}});
  }
  void number(const std::string& key, std::uint32_t value) {
    file.u32(key, value);
    answer["model_info"][key] = value;
  }
};

// A small mixture of experts, as a file and as the server tells it.
Told told_model() {
  Told told;
  told.file.text("general.architecture", "qwen3moe");
  told.answer["model_info"]["general.architecture"] = "qwen3moe";
  told.answer["model_info"]["tokenizer.ggml.tokens"] = nullptr;
  told.answer["model_info"]["qwen3moe.rope.freq_base"] = 1e6;
  told.number("qwen3moe.block_count", 1);
  told.number("qwen3moe.embedding_length", 64);
  told.number("qwen3moe.attention.head_count", 4);
  told.number("qwen3moe.attention.head_count_kv", 2);
  told.number("qwen3moe.expert_used_count", 2);
  told.tensor("token_embd.weight", {64, 96}, "F16");
  told.tensor("output_norm.weight", {64}, "F32");
  told.tensor("blk.0.attn_q.weight", {64, 64}, "Q8_0");
  told.tensor("blk.0.ffn_up_exps.weight", {64, 32, 8}, "Q4_0");
  return told;
}

}  // namespace

TEST_CASE("what the server tells of a model is what its file says") {
  const Told told = told_model();
  const TemporaryFolder folder;
  told.file.write(folder.path() + "/m.gguf");
  const auto file = read_gguf(folder.path() + "/m.gguf");
  const auto model = describe_ollama_show(told.answer.dump());
  REQUIRE(file.ok());
  REQUIRE(model.ok());
  CHECK(model->weights_known);
  CHECK(model->kv_known);
  CHECK(model->architecture == "qwen3moe");
  CHECK(model->dense_bytes == file->dense_bytes);
  CHECK(model->streamed_bytes == file->streamed_bytes);
  CHECK(model->parameters_total == file->parameters_total);
  REQUIRE(model->expert_layers.size() == 1);
  CHECK(model->expert_layers[0].experts == 8);
  CHECK(make_geometry(*model)->kv_bytes_per_token() == make_geometry(*file)->kv_bytes_per_token());
  CHECK(make_geometry(*model)->kv_bytes_per_token() == 2 * 2 * 16 * 2);
  CHECK(model->warnings.empty());
}

TEST_CASE("what it leaves out stays unknown") {
  Told told = told_model();
  SECTION("no tensors, as before 2025") {
    told.answer.erase("tensors");
    const auto model = describe_ollama_show(told.answer.dump());
    REQUIRE(model.ok());
    CHECK_FALSE(model->weights_known);
    CHECK(model->kv_known);
  }
  SECTION("a tensor of a type that is not known: no sum at all") {
    told.answer["tensors"][0]["type"] = "Q99";
    CHECK_FALSE(describe_ollama_show(told.answer.dump())->weights_known);
  }
  SECTION("tensors that overflow") {
    for (int i = 0; i < 4; ++i) {
      told.answer["tensors"].push_back({{"name", "blk.0.x"}, {"type", "F32"}, {"shape", {1ULL << 60U}}});
    }
    CHECK_FALSE(describe_ollama_show(told.answer.dump())->weights_known);
  }
  SECTION("an array that was cut to nothing") {
    told.answer["model_info"]["qwen3moe.attention.head_count_kv"] = json::array();
    const auto model = describe_ollama_show(told.answer.dump());
    CHECK(model->weights_known);
    CHECK_FALSE(model->kv_known);
  }
  SECTION("an array for each layer") {
    told.answer["model_info"]["qwen3moe.attention.head_count_kv"] = {1};
    CHECK(make_geometry(*describe_ollama_show(told.answer.dump()))->kv_bytes_per_token() == 2 * 16 * 2);
  }
  SECTION("not of that shape") {
    for (const char* text : {"", "[]", "{}", R"({"model_info":7})", R"({"error":"model 'x' not found"})"}) {
      CHECK_FALSE(describe_ollama_show(text).ok());
    }
    CHECK(describe_ollama_show(R"({"model_info":{},"tensors":{"a":1}})").ok());
  }
}
