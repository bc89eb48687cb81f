#include "collectors/model/hf_model.h"

#include "collectors/model/byte_source.h"
#include "collectors/model/hf_families.h"
#include "collectors/model/hf_folder.h"
#include "collectors/model/hf_quantisation.h"
#include "collectors/model/hf_weights.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace rooflined::model {
namespace {

// Keys that mean parts which only the family's own function knows.
constexpr auto kUnusualParts = std::to_array<std::string_view>(
    {"ssm_cfg", "mamba_d_state", "ssm_state_size", "linear_attn_config", "state_size", "attn_layer_indices",
     "compress_ratios", "linear_num_key_heads", "time_step_rank", "hybrid_override_pattern", "block_configs",
     "lru_width", "cross_attention_layers", "decay_low_rank_dim", "ffn_multipliers", "attn_layer_period",
     "attn_type_list", "full_attn_idxs", "mamba_expand"});

// Joins words for a warning: no more than a line of them.
std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (line.size() > 300) return line + ", …";
    line += (line.empty() ? "" : ", ") + word;
  }
  return line;
}

class ConfigDescription {
 public:
  // `with_files`: the weights will be replaced by those of the checkpoint, and doubts about them are of no interest.
  ConfigDescription(HfConfig& config, bool with_files) : config_(config), with_files_(with_files) {}

  ModelFile make() {
    model_.format = "config.json";
    quantisation_ = read_quantisation(config_);
    type_ = config_.type().empty() ? config_.outer_type() : config_.type();
    if (type_.empty() && config_.has({"ssm_cfg"})) {
      type_ = config_.text({"ssm_cfg.layer"}) == "Mamba2" ? "mamba2" : "mamba";
    }
    model_.architecture = to_label(type_.empty() ? config_.class_name() : type_, 64);
    if (const DecoderFamily* family = choose_family()) {
      layout_ = build_decoder(config_, *family);
      if (!config_.defaults_used().empty()) {
        warn("not in config.json, taken from the class's defaults: " + joined(config_.defaults_used()));
      }
      if (config_.missing().empty()) {
        fill();
        return std::move(model_);
      }
      warn("config.json does not say: " + joined(config_.missing()));
    }
    model_.weights_known = false;
    model_.kv_known = false;
    return std::move(model_);
  }

  // nullptr where the shape is not known. After make().
  const Layout* layout() const noexcept { return filled_ ? &layout_ : nullptr; }
  double packed_bits() const noexcept { return quantisation_.packed_bits; }

 private:
  void warn(std::string text) { model_.warnings.push_back(to_label(text, 512)); }

  const DecoderFamily* choose_family() {
    if (const std::string_view other = not_a_decoder(type_); !other.empty()) {
      warn(fmt::format("{} is {}: bytes per pass are not known", type_, other));
      return nullptr;
    }
    if (config_.flag({"is_encoder_decoder"}, false)) {
      warn(fmt::format("{} has an encoder and a decoder: bytes per pass are not known", type_));
      return nullptr;
    }
    const DecoderFamily* family = decoder_family(type_);
    if (family == nullptr) family = decoder_family(config_.outer_type());
    if (family != nullptr) return family;
    if (config_.has(kUnusualParts)) {
      warn(fmt::format("the architecture {} is not known here, and is no plain transformer", model_.architecture));
      return nullptr;
    }
    warn(fmt::format("the architecture {} is not known here: counted as a decoder of the common shape",
                     model_.architecture.empty() ? "(none named)" : model_.architecture));
    return decoder_family("llama");
  }

  void fill() {
    filled_ = true;
    const std::string type = config_.text({"torch_dtype", "dtype"});
    stored_bytes_ = bytes_of_torch_type(type);
    if (stored_bytes_ == 0) {
      stored_bytes_ = 2;
      if (quantisation_.method.empty() && !with_files_) {
        warn("config.json does not say how weights are stored: counted as 16 bit");
      }
    }
    if (!quantisation_.known && !with_files_) {
      model_.weights_known = false;
      warn(fmt::format("bytes per pass not known: quantisation {} without a number of bits", quantisation_.method));
    } else if (!quantisation_.method.empty() && !with_files_) {
      warn(fmt::format("bytes are from config.json ({}, {:.2f} bits a weight), not from the files",
                       quantisation_.method, quantisation_.weight_bits));
    }
    if (quantisation_.left_out_cut && !with_files_) {
      warn("more modules are left out of the quantisation than are read: some of those are counted as quantised");
    }
    model_.label = quantisation_.method.empty() ? type : quantisation_.method;
    model_.stored_wide = stored_bytes_ == 4 && quantisation_.method.empty();
    model_.tied_embeddings = layout_.tied;
    double dense = stored_bytes_ * (layout_.outer_matrices + layout_.outer_vectors);
    const double head = std::max(2.0, quantisation_.method.empty() ? stored_bytes_ : 2) * layout_.head_read;
    model_.parameters_total =
        layout_.embedding + layout_.lookup + layout_.head + layout_.outer_matrices + layout_.outer_vectors;
    model_.parameters_active = model_.parameters_total;
    model_.dense_parameters = layout_.outer_matrices + layout_.outer_vectors + layout_.head_read;
    model_.head_parameters = layout_.head_read;
    for (std::size_t index = 0; index < layout_.layers.size(); ++index) dense += add_layer(index);
    model_.dense_bytes = whole_bytes(dense + head);
    model_.head_bytes = whole_bytes(head);
    double streamed = dense + head;
    for (const ExpertLayers& group : model_.expert_layers) {
      streamed += static_cast<double>(group.layers * group.experts) * group.bytes_per_expert;
    }
    model_.streamed_bytes = whole_bytes(streamed);
    for (std::string& warning : layout_.warnings) warn(std::move(warning));
  }

  double bytes_each(std::string_view module) const {
    return quantisation_.converts(module) ? quantisation_.weight_bits / 8 : stored_bytes_;
  }

  // Its dense bytes.
  double add_layer(std::size_t index) {
    const LayerParts& layer = layout_.layers[index];
    const std::string name = fmt::format("model.layers.{}.", index);
    const double dense = layer.mixer * bytes_each(name + "self_attn.q_proj") +
                         layer.mlp * bytes_each(name + "mlp.gate_proj") +
                         layer.shared * bytes_each(name + "mlp.shared_experts.gate_proj") +
                         stored_bytes_ * (layer.router + layer.vectors);
    model_.parameters_total += layer.dense() + layer.lookup;
    model_.parameters_active += layer.dense() + layer.lookup;
    model_.dense_parameters += layer.dense();
    model_.state_bytes_per_sequence += layer.state_bytes;
    if (layer.experts.experts > 0) add_experts(layer.experts, name);
    for (const LayerCache& cache : layer.caches) {
      add_kv_layers(model_.kv_layers,
                    {1, cache.key_elements, cache.value_elements, cache.window, cache.chunk, cache.index_elements});
    }
    return dense;
  }

  void add_experts(const LayerExperts& experts, const std::string& name) {
    const double used = std::min(experts.per_token, experts.experts);
    if (experts.per_token > experts.experts && !clamped_) {
      clamped_ = true;
      warn(fmt::format("{} experts for each token of {}: taken as all of them", experts.per_token, experts.experts));
    }
    const double each = experts.matrices + experts.vectors;
    const double matrix_bytes =
        quantisation_.expert_bits > 0 ? quantisation_.expert_bits / 8 : bytes_each(name + "mlp.experts.0.gate_proj");
    const double bytes = experts.matrices * matrix_bytes + experts.vectors * stored_bytes_;
    model_.parameters_total += experts.experts * each;
    model_.parameters_active += used * each;
    add_expert_layers(model_.expert_layers, {1, static_cast<std::uint64_t>(experts.experts), used, bytes, each});
  }

  HfConfig& config_;
  bool with_files_;
  std::string type_;
  ModelFile model_;
  Layout layout_;
  HfQuantisation quantisation_;
  double stored_bytes_ = 2;
  bool clamped_ = false;
  bool filled_ = false;
};

Result<std::string> read_text(const std::string& path) {
  Result<std::unique_ptr<ByteSource>> source = open_file(path);
  if (!source) return source.error();
  SourceReader reader(**source);
  if (reader.left() > kConfigBytesMax) {
    return Error{ErrorCode::kLimit, path, fmt::format("longer than {} bytes", kConfigBytesMax)};
  }
  return reader.text(reader.left());
}

// Some quantisers leave their settings in a file of their own.
void merge_quantiser_file(nlohmann::json& config, const std::string& folder) {
  if (config.contains("quantization_config")) return;
  const Result<std::string> text = read_text(folder + "/hf_quant_config.json");
  if (!text) return;
  Result<nlohmann::json> json = parse_config_json(*text, folder);
  if (json && json->contains("quantization")) config["quantization_config"] = std::move((*json)["quantization"]);
}

Status add_checkpoint(ModelFile& model, const ConfigDescription& description, const std::vector<std::string>& files) {
  CheckpointWeights weights(description.layout(), description.packed_bits());
  for (const std::string& path : files) {
    Result<std::unique_ptr<ByteSource>> source = open_file(path);
    if (!source) return source.error();
    const auto summary =
        read_safetensors_header(**source, path, [&](const SafetensorsTensor& tensor) { weights.add(tensor); });
    if (!summary) return summary.error();
    model.file_bytes += (*source)->size();
    if (summary->missing_bytes > 0) {
      model.cut = true;
      model.warnings.push_back(fmt::format("cut: {} bytes of tensor data are missing; all figures are from the header",
                                           summary->missing_bytes));
    }
    for (const std::string& type : summary->unknown_types) {
      model.warnings.push_back(
          fmt::format("the type {} is not known here: its bytes are, its parameters may not be", type));
    }
  }
  model.format = "safetensors";
  model.files = files.size();
  weights.finish(model);
  return ok_status();
}

Result<ModelFile> read_folder(const std::string& folder) {
  const std::string path = folder + "/config.json";
  const Result<std::string> text = read_text(path);
  if (!text) return text.error();
  Result<nlohmann::json> json = parse_config_json(*text, path);
  if (!json) return json.error();
  merge_quantiser_file(*json, folder);
  const Result<std::vector<std::string>> files = safetensors_files(folder);
  if (!files) return files.error();
  HfConfig config(std::move(*json));
  ConfigDescription description(config, !files->empty());
  ModelFile model = description.make();
  if (!files->empty()) {
    if (Status added = add_checkpoint(model, description, *files); !added) return added.error();
  }
  return model;
}

}  // namespace

Result<ModelFile> describe_config(std::string_view text, const std::string& name) {
  Result<nlohmann::json> json = parse_config_json(text, name);
  if (!json) return json.error();
  HfConfig config(std::move(*json));
  return ConfigDescription(config, false).make();
}

Result<ModelFile> read_hf(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return read_folder(snapshot_folder(path));
  if (path.ends_with(".safetensors")) return read_folder(std::filesystem::path(path).parent_path().string());
  const Result<std::string> text = read_text(path);
  if (!text) return text.error();
  return describe_config(*text, path);
}

}  // namespace rooflined::model
