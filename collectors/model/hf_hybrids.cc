// Families whose layers are of more than one kind: attention here, a recurrent state there.

#include "collectors/model/hf_families.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace rooflined::model {
namespace {

bool contains(const std::vector<double>& list, double number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

// Mamba 2 by the keys that most hybrids use.
Mamba2Sizes mamba2_sizes(LayerContext& layer) {
  HfConfig& config = layer.config;
  Mamba2Sizes sizes;
  sizes.heads = config.need({"mamba_n_heads", "mamba_num_heads", "n_mamba_heads"});
  const double dim = config.number_or({"mamba_d_head", "mamba_head_dim", "mamba_headdim"}, 0);
  sizes.inner = dim > 0 ? sizes.heads * dim : layer.sizes.hidden * config.number_or({"mamba_expand", "expand"}, 2);
  sizes.state = config.need({"mamba_d_state", "ssm_state_size"});
  sizes.groups = config.number_or({"mamba_n_groups", "n_groups", "mamba_ngroups"}, 1);
  sizes.kernel = config.number_or({"mamba_d_conv", "conv_kernel"}, 4);
  sizes.projection_bias = config.flag({"mamba_proj_bias", "use_bias"}, false);
  sizes.convolution_bias = config.flag({"mamba_conv_bias", "use_conv_bias"}, true);
  return sizes;
}

// 'M', '*', '-', 'E' in the pattern, or the words that newer configs use for them.
char nemotron_kind(LayerContext& layer) {
  const std::string pattern = layer.config.text({"hybrid_override_pattern"});
  if (layer.layer < pattern.size()) return pattern[layer.layer];
  const std::string word = layer_type(layer);
  if (word == "mamba") return 'M';
  if (word == "attention") return '*';
  if (word == "mlp") return '-';
  if (word == "moe") return 'E';
  layer.config.need({"hybrid_override_pattern"});
  return ' ';
}

// Routed experts may work in a narrower space than the layer's width, with a projection before and after.
void add_latent_experts(LayerContext& layer, double latent) {
  add_experts(layer);
  if (latent <= 0) return;
  LayerParts& parts = layer.parts;
  parts.experts.matrices *= latent / layer.sizes.hidden;
  parts.shared += 2 * layer.sizes.hidden * latent;
}

}  // namespace

void feed_nothing(LayerContext&) {}

void mix_jamba(LayerContext& layer) {
  HfConfig& config = layer.config;
  const double period = std::max(config.number_or({"attn_layer_period"}, 8), 1.0);
  const double offset = config.number_or({"attn_layer_offset"}, 4);
  const std::string type = layer_type(layer);
  const bool attends =
      type.empty() ? std::fmod(static_cast<double>(layer.layer), period) == offset : type == "attention";
  if (attends) {
    add_attention(layer);
  } else {
    add_mamba1(layer, layer.sizes.hidden * config.number_or({"mamba_expand"}, 2), true);
  }
}

void mix_bamba(LayerContext& layer) {
  if (contains(layer.config.numbers({"attn_layer_indices"}), static_cast<double>(layer.layer)) ||
      layer_type(layer) == "attention") {
    add_attention(layer);
  } else {
    add_mamba2(layer, mamba2_sizes(layer));
  }
}

void mix_granite_hybrid(LayerContext& layer) {
  if (layer_type(layer) == "mamba") {
    add_mamba2(layer, mamba2_sizes(layer));
  } else {
    add_attention(layer);
  }
}

void feed_granite_hybrid(LayerContext& layer) {
  if (layer.config.number_or({"num_local_experts"}, 0) > 0) {
    add_experts(layer);
  } else {
    add_dense_mlp(layer, layer.config.need({"shared_intermediate_size"}));
  }
}

void mix_falcon_h1(LayerContext& layer) {
  HfConfig& config = layer.config;
  add_attention(layer);
  Mamba2Sizes sizes = mamba2_sizes(layer);
  sizes.inner = config.number_or({"mamba_d_ssm"}, sizes.inner);
  sizes.norm = config.flag({"mamba_rms_norm"}, false);
  sizes.projection_bias = config.flag({"mamba_proj_bias"}, false);
  add_mamba2(layer, sizes);
}

void mix_nemotron_h(LayerContext& layer) {
  HfConfig& config = layer.config;
  switch (nemotron_kind(layer)) {
    case 'M':
      add_mamba2(layer, mamba2_sizes(layer));
      break;
    case '*':
      add_attention(layer);
      break;
    case '-':
      add_dense_mlp(layer, config.need({"intermediate_size"}, layer.layer));
      break;
    case 'E':
      add_latent_experts(layer, config.number_or({"moe_latent_size"}, 0));
      layer.parts.vectors += layer.parts.experts.experts;
      break;
    default:
      break;
  }
}

void mix_qwen3_next(LayerContext& layer) {
  HfConfig& config = layer.config;
  const double interval = std::max(config.number_or({"full_attention_interval"}, 4), 1.0);
  const std::string type = layer_type(layer);
  const bool linear =
      type.empty() ? std::fmod(static_cast<double>(layer.layer + 1), interval) != 0 : type == "linear_attention";
  if (linear) {
    add_gated_delta_net(layer);
    return;
  }
  AttentionSizes sizes = attention_sizes(layer);
  // The query projection makes a gate for each head as well.
  if (config.flag({"attn_output_gate"}, true)) sizes.query_width = 2 * sizes.heads * sizes.head_dim;
  add_attention_of(layer, sizes);
}

void mix_kimi_linear(LayerContext& layer) {
  // Counted from 1.
  if (contains(layer.config.numbers({"linear_attn_config.kda_layers"}), static_cast<double>(layer.layer + 1))) {
    add_kimi_delta_attention(layer);
  } else {
    add_latent_attention(layer);
  }
}

void feed_kimi(LayerContext& layer) {
  HfConfig& config = layer.config;
  if (static_cast<double>(layer.layer) < config.number_or({"first_k_dense_replace"}, 0)) {
    add_dense_mlp(layer, config.need({"intermediate_size"}));
    return;
  }
  const double latent = config.number_or({"routed_expert_hidden_size"}, 0);
  add_latent_experts(layer, latent);
  if (config.flag({"latent_moe_use_norm"}, false)) layer.parts.vectors += latent;
}

void mix_minimax(LayerContext& layer) {
  HfConfig& config = layer.config;
  const std::string type = layer_type(layer);
  const bool linear =
      type.empty() ? config.number_or({"attn_type_list"}, 1, layer.layer) == 0 : type == "linear_attention";
  if (linear) {
    add_lightning_attention(layer);
  } else {
    add_attention(layer);
  }
}

void mix_lfm2(LayerContext& layer) {
  HfConfig& config = layer.config;
  const std::string type = layer_type(layer);
  const bool attends = type.empty() ? contains(config.numbers({"full_attn_idxs"}), static_cast<double>(layer.layer))
                                    : type == "full_attention";
  if (attends) {
    add_attention(layer);
  } else {
    add_short_convolution(layer);
  }
}

void feed_lfm2(LayerContext& layer) {
  HfConfig& config = layer.config;
  if (config.number_or({"num_experts"}, 0) > 0) {
    add_feed_forward(layer);
    return;
  }
  double width = config.need({"block_ff_dim", "intermediate_size"});
  if (config.flag({"block_auto_adjust_ff_dim"}, true)) {
    width = std::floor(2 * width / 3);
    width = std::floor(width * config.number_or({"block_ffn_dim_multiplier"}, 1));
    const double step = std::max(config.number_or({"block_multiple_of"}, 256), 1.0);
    width = std::ceil(width / step) * step;
  }
  add_dense_mlp(layer, width);
}

void mix_recurrent_gemma(LayerContext& layer) {
  HfConfig& config = layer.config;
  const std::vector<std::string> pattern = config.words({"block_types", "_block_types"});
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const bool recurrent = pattern.empty() ? layer.layer % 3 != 2 : pattern[layer.layer % pattern.size()] == "recurrent";
  if (!recurrent) {
    add_attention_of(layer, attention_sizes(layer));
    parts.vectors += hidden;
    LayerCache& cache = parts.caches.back();
    cache.window = static_cast<std::uint64_t>(config.number_or({"attention_window_size"}, 2048));
    return;
  }
  const double width = config.number_or({"lru_width"}, hidden);
  const double heads = std::max(config.need({"num_attention_heads"}), 1.0);
  const double kernel = config.number_or({"conv1d_width"}, 4);
  parts.mixer += 3 * hidden * width + 2 * width * width / heads;
  parts.vectors += 2 * width + hidden + width * (kernel + 1) + 3 * width;
  parts.state_bytes += width * 4 + width * (kernel - 1) * 2;
}

void feed_recurrent_gemma(LayerContext& layer) {
  add_dense_mlp(layer, layer.config.need({"intermediate_size"}) / 2);
}

// A gate for each head beside the queries.
void mix_gated_attention(LayerContext& layer) {
  AttentionSizes sizes = attention_sizes(layer);
  sizes.query_width = 2 * sizes.heads * sizes.head_dim;
  add_attention_of(layer, sizes);
}

namespace {

// The attention of Zamba's shared blocks works on twice the width: the layer's input and the embedding.
AttentionSizes zamba2_sizes(HfConfig& config, double hidden) {
  AttentionSizes sizes;
  sizes.heads = std::max(config.need({"num_attention_heads"}), 1.0);
  sizes.kv_heads = config.number_or({"num_key_value_heads"}, sizes.heads);
  sizes.head_dim = config.number_or({"attention_head_dim"}, std::floor(2 * hidden / sizes.heads));
  return sizes;
}

}  // namespace

// Mamba 2 everywhere; some layers run a shared block first, with small adapters of their own to it.
void mix_zamba2(LayerContext& layer) {
  HfConfig& config = layer.config;
  add_mamba2(layer, mamba2_sizes(layer));
  const bool hybrid =
      contains(config.numbers({"hybrid_layer_ids"}), static_cast<double>(layer.layer)) || layer_type(layer) == "hybrid";
  if (!hybrid) return;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double rank = config.number_or({"adapter_rank"}, 128);
  const AttentionSizes sizes = zamba2_sizes(config, hidden);
  parts.mixer += hidden * hidden + rank * (hidden + 2 * layer.sizes.intermediate);
  if (config.flag({"use_shared_attention_adapter"}, false)) {
    parts.mixer += rank * (3 * 2 * hidden + (sizes.heads + 2 * sizes.kv_heads) * sizes.head_dim);
  }
  LayerCache cache;
  cache.key_elements = sizes.kv_heads * sizes.head_dim;
  cache.value_elements = cache.key_elements;
  parts.caches.push_back(cache);
}

void outside_zamba2(HfConfig& config, const DecoderFamily&, const DecoderSizes& sizes, Layout& layout) {
  const AttentionSizes attention = zamba2_sizes(config, sizes.hidden);
  const double blocks = config.number_or({"num_mem_blocks"}, 1);
  const double projected = (attention.heads + 2 * attention.kv_heads) * attention.head_dim;
  layout.outer_matrices +=
      blocks * (2 * sizes.hidden * projected + attention.heads * attention.head_dim * sizes.hidden +
                3 * sizes.hidden * sizes.intermediate);
  layout.outer_vectors += blocks * 3 * sizes.hidden;
  layout.warnings.emplace_back("blocks that several layers share are counted once: a lower bound of what a pass reads");
}

// Ling 2.5 and Ring 2.x: of each group of layers the last attends, the others are linear.
void mix_bailing_linear(LayerContext& layer) {
  HfConfig& config = layer.config;
  const double group = config.number_or({"layer_group_size"}, 0);
  const double index = static_cast<double>(layer.layer);
  const double layers = static_cast<double>(layer.sizes.layers);
  if (group < 1 || std::fmod(index + 1, group) == 0 || index >= std::floor(layers / group) * group) {
    add_attention(layer);
    return;
  }
  const AttentionSizes sizes = attention_sizes(layer);
  LayerParts& parts = layer.parts;
  const double width = sizes.heads * sizes.head_dim;
  parts.mixer += layer.sizes.hidden * 5 * width;
  parts.vectors += width + 2 * sizes.head_dim;
  parts.state_bytes += width * sizes.head_dim * 4;
}

}  // namespace rooflined::model
