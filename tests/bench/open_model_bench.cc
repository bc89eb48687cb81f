// What opening a model of 100,000 tensors costs: a mixture of experts, one tensor for each matrix, header-only files of
// its own.
//
// Figures for a person: nothing here passes or fails. The CPU column is of one opening.

#include "collectors/model/model_reader.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace rooflined::bench {
namespace {

constexpr std::uint32_t kLayers = 64;
constexpr std::uint32_t kExperts = 520;  // × 64 layers × 3 matrices: 99,840 tensors
constexpr std::uint64_t kWidth = 2048;
constexpr std::uint64_t kExpertWidth = 768;

std::string write_gguf(const std::string& folder) {
  test::GgufWriter file;
  file.text("general.architecture", "llama").u32("llama.block_count", kLayers).u32("llama.embedding_length", kWidth);
  file.u32("llama.attention.head_count", 32).u32("llama.expert_used_count", 8);
  file.tensor("token_embd.weight", {kWidth, 1024}, "F16");
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    file.tensor(fmt::format("blk.{}.ffn_gate_inp.weight", layer), {kWidth, kExperts}, "F32");
    for (std::uint32_t expert = 0; expert < kExperts; ++expert) {
      for (const char* part : {"gate", "up", "down"}) {
        file.tensor(fmt::format("blk.{}.ffn_{}.{}.weight", layer, part, expert), {kWidth, kExpertWidth}, "Q4_K");
      }
    }
  }
  std::string path = folder + "/model-Q4_K_M.gguf";
  file.write(path);
  return path;
}

std::string write_safetensors(const std::string& folder) {
  std::ofstream(folder + "/config.json") << fmt::format(
      R"({{"model_type":"qwen3_moe","hidden_size":{},"moe_intermediate_size":{},"num_hidden_layers":{},"num_experts":{},
"num_experts_per_tok":8,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"vocab_size":1024,
"tie_word_embeddings":true,"torch_dtype":"bfloat16"}})",
      kWidth, kExpertWidth, kLayers, kExperts);
  std::string header;
  std::uint64_t end = 0;
  const auto tensor = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t begin = end;
    end += rows * columns * 2;
    header += fmt::format(R"({}"{}":{{"dtype":"BF16","shape":[{},{}],"data_offsets":[{},{}]}})",
                          header.empty() ? '{' : ',', name, rows, columns, begin, end);
  };
  tensor("model.embed_tokens.weight", 1024, kWidth);
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    for (std::uint32_t expert = 0; expert < kExperts; ++expert) {
      for (const char* part : {"down_proj", "gate_proj", "up_proj"}) {
        tensor(fmt::format("model.layers.{}.mlp.experts.{}.{}.weight", layer, expert, part), kExpertWidth, kWidth);
      }
    }
  }
  header += '}';
  std::ofstream file(folder + "/model.safetensors", std::ios::binary);
  for (unsigned byte = 0; byte < 8; ++byte) file.put(static_cast<char>((header.size() >> (8 * byte)) & 0xFFU));
  file << header;
  return folder;
}

void open_model(benchmark::State& state, std::string (*write)(const std::string&)) {
  const TemporaryFolder folder;
  const std::string path = write(folder.path());
  double parameters = 0;
  for (auto _ : state) {
    const auto model = model::read_model(path);
    if (!model || !model->weights_known) {
      state.SkipWithError("the model was not read");
      return;
    }
    parameters = model->parameters_total;
  }
  state.counters["parameters"] = parameters;
}

BENCHMARK_CAPTURE(open_model, gguf, write_gguf)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(open_model, safetensors, write_safetensors)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rooflined::bench

BENCHMARK_MAIN();
