#include "collectors/model/hf_decoder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

namespace rooflined::model {
namespace {

constexpr std::size_t kLayersMax = 4096;

constexpr auto kHidden =
    std::to_array<std::string_view>({"hidden_size", "n_embd", "d_model", "n_embed", "model_dim", "dim"});
constexpr auto kLayers = std::to_array<std::string_view>(
    {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers"});
constexpr auto kVocabulary = std::to_array<std::string_view>({"padded_vocab_size", "vocab_size"});
constexpr auto kIntermediate =
    std::to_array<std::string_view>({"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size",
                                     "ffn_config.ffn_hidden_size", "block_ff_dim", "d_ff"});
constexpr auto kExperts =
    std::to_array<std::string_view>({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
                                     "ffn_config.moe_num_experts", "num_moe_experts", "n_experts"});
constexpr auto kPerToken = std::to_array<std::string_view>(
    {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_top_k", "moe_k",
     "top_k_experts", "ffn_config.moe_top_k", "num_selected_experts", "moe_router_topk", "num_activated_experts",
     "n_experts_per_tok"});
constexpr auto kExpertWidth = std::to_array<std::string_view>(
    {"moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size", "expert_intermediate_size"});
constexpr auto kSharedWidth =
    std::to_array<std::string_view>({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                                     "shared_intermediate_size", "share_expert_dim"});
constexpr auto kSharedCount = std::to_array<std::string_view>(
    {"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts", "n_shared_expert"});

// "4,5,6", as one family writes its list of layers.
std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> list;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end) {
    unsigned number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc{}) list.push_back(number);
    at = std::max(next, at) + 1;
  }
  return list;
}

bool contains(const std::vector<double>& list, std::size_t layer) {
  return std::find(list.begin(), list.end(), static_cast<double>(layer)) != list.end();
}

// Every `step`-th layer, counted from `offset`.
bool on_step(std::size_t layer, double step, double offset) {
  if (!(step >= 1)) return true;
  return std::fmod(std::abs(static_cast<double>(layer) - offset), std::floor(step)) == 0;
}

// Whether the layer has routed experts, by whichever of the keys the config has.
bool is_expert_layer(LayerContext& context) {
  HfConfig& config = context.config;
  const std::size_t layer = context.layer;
  const double index = static_cast<double>(layer);
  if (const std::string type = config.word_at({"mlp_layer_types"}, layer); !type.empty()) return type == "sparse";
  constexpr auto kList = std::to_array<std::string_view>({"moe_layers_enum", "moe_layers"});
  if (config.has(kList)) {
    const std::string text = config.text(kList);
    return contains(text.empty() ? config.numbers(kList) : numbers_in(text), layer);
  }
  if (const auto* freq = config.find({"moe_layer_freq"}); freq != nullptr && freq->is_array()) {
    return config.number_or({"moe_layer_freq"}, 0, layer) != 0;
  }
  if (index <
      config.number_or({"first_k_dense_replace", "num_dense_layers", "moe_layer_num_skipped", "n_dense_layers"}, 0)) {
    return false;
  }
  if (contains(config.numbers({"mlp_only_layers"}), layer)) return false;
  if (config.has({"moe_layer_interval"})) {
    const double last = config.number_or({"moe_layer_end_index"}, static_cast<double>(context.sizes.layers));
    return index >= config.number_or({"moe_layer_start_index"}, 0) && index <= last &&
           on_step(layer + 1, config.number_or({"moe_layer_interval"}, 1), 0);
  }
  if (config.has({"expert_layer_period"})) {
    return on_step(layer, config.number_or({"expert_layer_period"}, 1), config.number_or({"expert_layer_offset"}, 0));
  }
  if (config.has({"moe_layer_freq"})) return on_step(layer, config.number_or({"moe_layer_freq"}, 1), 0);
  return on_step(layer + 1,
                 config.number_or({"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_frequency"}, 1), 0);
}

bool on(HfConfig& config, const Switch& either) {
  return either.key.empty() ? either.otherwise : config.flag({either.key}, either.otherwise);
}

// Deepseek's way of balancing adds a number for each expert.
bool has_expert_bias(LayerContext& layer) {
  HfConfig& config = layer.config;
  return layer.family.expert_bias || config.text({"topk_method"}) == "noaux_tc" ||
         config.flag({"use_routing_bias", "moe_router_enable_expert_bias", "use_expert_bias", "moe_router_use_bias"},
                     false);
}

DecoderSizes read_sizes(HfConfig& config) {
  DecoderSizes sizes;
  sizes.hidden = config.need(kHidden);
  sizes.layers = config.need_count(kLayers, kLayersMax);
  sizes.vocabulary = config.need(kVocabulary);
  const double heads = config.number_or({"num_attention_heads", "n_head", "num_heads", "n_heads"}, 0);
  if (heads > 0) sizes.head_dim = std::floor(sizes.hidden / heads);
  sizes.intermediate = config.number_or(kIntermediate, config.number_or({"expansion_ratio"}, 0) * sizes.hidden);
  const std::string type = config.text({"mamba_ssm_dtype", "mamba_ssm_cache_dtype"});
  if (type == "float32") sizes.state_element_bytes = 4;
  return sizes;
}

}  // namespace

double norm_size(NormKind kind, double width) {
  switch (kind) {
    case NormKind::kRms:
    case NormKind::kWeight:
      return width;
    case NormKind::kLayer:
      return 2 * width;
    case NormKind::kNone:
      return 0;
  }
  return 0;
}

void add_dense_mlp(LayerContext& layer, double width) {
  const double hidden = layer.sizes.hidden;
  const double into = layer.family.plain_mlp ? 1 : 2;
  layer.parts.mlp += (into + 1) * hidden * width;
  if (on(layer.config, layer.family.mlp_bias)) layer.parts.vectors += into * width + hidden;
}

void add_experts(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  double width = config.number_or(kExpertWidth, 0, layer.layer);
  if (width == 0) width = layer.sizes.intermediate;
  if (width == 0) config.need({"moe_intermediate_size"});
  const double matrices = layer.family.plain_mlp ? 2 : 3;
  parts.experts.experts = config.need(kExperts, layer.layer);
  parts.experts.per_token = config.need(kPerToken, layer.layer);
  parts.experts.matrices = matrices * hidden * width;
  parts.router += hidden * parts.experts.experts;
  if (has_expert_bias(layer)) parts.vectors += parts.experts.experts;
  double shared = config.number_or(kSharedWidth, 0);
  if (shared == 0 && !config.has(kSharedWidth)) shared = config.number_or(kSharedCount, 0, layer.layer) * width;
  parts.shared += matrices * hidden * shared;
  if (shared > 0 && layer.family.shared_gate) parts.router += hidden;
}

void add_feed_forward(LayerContext& layer) {
  if (layer.config.number_or(kExperts, 0, layer.layer) > 1 && is_expert_layer(layer)) {
    add_experts(layer);
    return;
  }
  double width = layer.config.number_or(kIntermediate, layer.sizes.intermediate, layer.layer);
  // The older families leave it out where it is four times the width.
  if (width == 0 && layer.family.plain_mlp) width = 4 * layer.sizes.hidden;
  if (width == 0) width = layer.config.need(kIntermediate);
  add_dense_mlp(layer, width);
}

Layout build_decoder(HfConfig& config, const DecoderFamily& family) {
  config.set_defaults(family.defaults);
  const DecoderSizes sizes = read_sizes(config);
  Layout layout;
  layout.tied = config.flag({"tie_word_embeddings", "tie_embeddings", "share_input_output_layers"}, family.tied);
  layout.embedding = sizes.vocabulary * sizes.hidden;
  layout.head = layout.tied ? 0 : layout.embedding;
  layout.outer_vectors = norm_size(family.norm, sizes.hidden);
  if (on(config, family.head_bias)) layout.outer_vectors += sizes.vocabulary;
  if (family.positions >= 0) {
    layout.lookup += sizes.hidden * (family.positions +
                                     config.need({"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"}));
  }
  layout.layers.resize(sizes.layers);
  for (std::size_t index = 0; index < sizes.layers; ++index) {
    LayerParts& parts = layout.layers[index];
    LayerContext layer{config, family, sizes, index, parts};
    parts.vectors += family.norms * norm_size(family.norm, sizes.hidden);
    (family.mixer != nullptr ? family.mixer : add_attention)(layer);
    (family.ffn != nullptr ? family.ffn : add_feed_forward)(layer);
    if (family.extra != nullptr) family.extra(layer);
  }
  if (family.outside != nullptr) family.outside(config, family, sizes, layout);
  layout.head_read = layout.tied ? layout.embedding : layout.head;
  return layout;
}

}  // namespace rooflined::model
