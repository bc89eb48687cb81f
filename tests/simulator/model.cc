#include "tests/simulator/model.h"

#include "collectors/model/byte_source.h"
#include "collectors/model/catalogue.h"
#include "collectors/model/gguf_model.h"
#include "collectors/model/model_file.h"
#include "collectors/model/model_reader.h"
#include "tests/support/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <span>
#include <system_error>

namespace rooflined::simulator {
namespace {

constexpr std::string_view kBuiltinPrefix = "builtin:";

// A llama-like transformer: matrices Q8_0, norms and routers F32.
struct Preset {
  std::string_view name;
  std::uint32_t layers;
  std::uint32_t width;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t head_width;
  std::uint32_t feed_forward;  // of one expert where there are experts
  std::uint32_t vocabulary;
  std::uint32_t experts;
  std::uint32_t experts_per_token;
  bool tied;  // the token embedding is the output head too
};

// The shapes of Llama 3.2 1B and of a small granite MoE.
constexpr Preset kPresets[] = {
    {"llama-3.2-1b-q8_0", 16, 2048, 32, 8, 64, 8192, 128256, 0, 0, true},
    {"moe-small", 24, 1024, 16, 8, 64, 512, 49152, 32, 8, false},
};

Result<const Preset*> find_preset(std::string_view name) {
  const auto* const found = std::ranges::find(kPresets, name, &Preset::name);
  if (found != std::end(kPresets)) return found;
  return Error{ErrorCode::kNotFound, std::string(name),
               fmt::format("no such built-in model; there are {}, and published ones by their hub names",
                           fmt::join(preset_names(), ", "))};
}

void add_layer(test::GgufWriter& file, const Preset& preset, std::uint32_t layer) {
  const auto add = [&](std::string_view part, std::vector<std::uint64_t> dimensions, std::string_view type) {
    file.tensor(fmt::format("blk.{}.{}.weight", layer, part), std::move(dimensions), type);
  };
  const std::uint64_t width = preset.width;
  const std::uint64_t feed_forward = preset.feed_forward;
  const std::uint64_t query = std::uint64_t{preset.heads} * preset.head_width;
  const std::uint64_t key = std::uint64_t{preset.kv_heads} * preset.head_width;
  add("attn_norm", {width}, "F32");
  add("attn_q", {width, query}, "Q8_0");
  add("attn_k", {width, key}, "Q8_0");
  add("attn_v", {width, key}, "Q8_0");
  add("attn_output", {query, width}, "Q8_0");
  add("ffn_norm", {width}, "F32");
  if (preset.experts == 0) {
    add("ffn_gate", {width, feed_forward}, "Q8_0");
    add("ffn_up", {width, feed_forward}, "Q8_0");
    add("ffn_down", {feed_forward, width}, "Q8_0");
  } else {
    add("ffn_gate_inp", {width, preset.experts}, "F32");
    add("ffn_gate_exps", {width, feed_forward, preset.experts}, "Q8_0");
    add("ffn_up_exps", {width, feed_forward, preset.experts}, "Q8_0");
    add("ffn_down_exps", {feed_forward, width, preset.experts}, "Q8_0");
  }
}

test::GgufWriter gguf_of(const Preset& preset) {
  test::GgufWriter file;
  file.text("general.architecture", "llama").text("general.name", preset.name);
  file.u32("general.file_type", 7);  // mostly Q8_0
  file.u32("llama.context_length", 131072).u32("llama.embedding_length", preset.width);
  file.u32("llama.block_count", preset.layers).u32("llama.feed_forward_length", preset.feed_forward);
  file.u32("llama.attention.head_count", preset.heads).u32("llama.attention.head_count_kv", preset.kv_heads);
  file.u32("llama.rope.dimension_count", preset.head_width).u32("llama.vocab_size", preset.vocabulary);
  if (preset.experts > 0) {
    file.u32("llama.expert_count", preset.experts).u32("llama.expert_used_count", preset.experts_per_token);
  }
  file.tensor("token_embd.weight", {preset.width, preset.vocabulary}, "Q8_0");
  for (std::uint32_t layer = 0; layer < preset.layers; ++layer) add_layer(file, preset, layer);
  file.tensor("output_norm.weight", {preset.width}, "F32");
  if (!preset.tied) file.tensor("output.weight", {preset.width, preset.vocabulary}, "Q8_0");
  return file;
}

Result<model::ModelFile> describe(const Preset& preset) {
  const std::string bytes = gguf_of(preset).header();
  model::MemorySource source(std::as_bytes(std::span(bytes)));
  auto header = model::read_gguf_header(source, std::string(preset.name));
  if (!header) return header.error();
  model::GgufShard shard{std::move(*header), 0};
  shard.file_bytes = shard.header.data_offset + shard.header.data_bytes;
  return model::describe_gguf(std::span(&shard, 1), preset.name);
}

Result<model::ModelFile> describe_builtin(std::string_view name) {
  if (auto published = model::catalogue_model(name)) return std::move(*published);
  const auto preset = find_preset(name);
  if (!preset) return preset.error();
  return describe(**preset);
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Result<Model> load_model(const std::string& name, std::string_view kv_cache_type) {
  const bool builtin = name.starts_with(kBuiltinPrefix);
  const std::string_view preset = builtin ? std::string_view(name).substr(kBuiltinPrefix.size()) : "";
  const auto file = builtin ? describe_builtin(preset) : model::read_model(name);
  if (!file) return file.error();
  const auto types = model::parse_kv_cache_types(kv_cache_type);
  if (!types) return types.error();
  auto geometry = model::make_geometry(*file, *types);
  if (!geometry) return Error{ErrorCode::kUnsupported, name, "what a pass reads of this model is not known"};

  Model model;
  model.geometry = std::move(*geometry);
  model.tensor_bytes = file->tensor_bytes;
  model.parameters = file->parameters_total;
  if (builtin) {
    model.name = preset;
    return model;
  }
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(name, error);
  if (error) return Error{ErrorCode::kIo, name, error.message()};
  // Servers are told the folder, and call the model by it.
  if (path.filename() == "config.json") path = path.parent_path();
  model.name = path.filename();
  model.path = path;
  return model;
}

Status write_model(std::string_view preset, const std::string& path) {
  const auto found = find_preset(preset);
  if (!found) return found.error();
  try {
    gguf_of(**found).write(path, test::GgufWriter::Data::kSparse);
  } catch (const std::exception& error) {
    return Error{ErrorCode::kIo, "", error.what()};
  }
  return ok_status();
}

}  // namespace rooflined::simulator
