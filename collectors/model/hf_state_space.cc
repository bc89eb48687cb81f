// Models without attention: Mamba 1 and 2, RWKV 4 to 7.

#include "collectors/model/hf_families.h"

#include <algorithm>
#include <cmath>

namespace rooflined::model {

void mix_mamba(LayerContext& layer) {
  // Falcon's config has an expansion that its own width contradicts: the width is the one that holds.
  const double expanded = layer.sizes.hidden * layer.config.number_or({"expand", "ssm_cfg.expand"}, 2);
  add_mamba1(layer, layer.config.number_or({"intermediate_size"}, expanded), false);
}

void mix_mamba2(LayerContext& layer) {
  HfConfig& config = layer.config;
  Mamba2Sizes sizes;
  sizes.inner = layer.sizes.hidden * config.number_or({"expand", "ssm_cfg.expand"}, 2);
  const double dim = std::max(config.number_or({"head_dim", "ssm_cfg.headdim"}, 64), 1.0);
  sizes.heads = config.number_or({"num_heads"}, std::floor(sizes.inner / dim));
  sizes.state = config.number_or({"state_size", "ssm_cfg.d_state"}, 128);
  sizes.groups = config.number_or({"n_groups", "ssm_cfg.ngroups"}, 1);
  sizes.kernel = config.number_or({"conv_kernel", "ssm_cfg.d_conv"}, 4);
  sizes.projection_bias = config.flag({"use_bias"}, false);
  sizes.convolution_bias = config.flag({"use_conv_bias"}, true);
  add_mamba2(layer, sizes);
}

// The first configs name the vocabulary without the rows that pad it.
void outside_mamba(HfConfig& config, const DecoderFamily&, const DecoderSizes& sizes, Layout& layout) {
  const double multiple = config.has({"ssm_cfg"}) ? config.number_or({"pad_vocab_size_multiple"}, 1) : 1;
  if (multiple <= 1) return;
  layout.embedding = std::ceil(sizes.vocabulary / multiple) * multiple * sizes.hidden;
  if (!layout.tied) layout.head = layout.embedding;
}

void mix_rwkv(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double width = config.number_or({"attention_hidden_size"}, hidden);
  if (config.type() == "rwkv") {
    parts.mixer += 4 * hidden * width;
    parts.vectors += 3 * hidden + 2 * width;
    parts.state_bytes += 5 * hidden * 4;
    return;
  }
  const double head = std::max(config.number_or({"head_size", "head_dim"}, 64), 1.0);
  parts.mixer += 5 * hidden * width;
  parts.vectors += 2 * width + norm_size(NormKind::kLayer, width);
  if (config.type() == "rwkv6") {
    // What is mixed, and how fast it decays, depends on the token through small bottlenecks of 32 and 64.
    const double mix = hidden >= 4096 ? 64 : 32;
    const double decay = hidden >= 4096 ? 128 : 64;
    parts.mixer += hidden * 5 * mix * 2 + hidden * decay + decay * width;
    parts.vectors += 6 * hidden;
  } else {
    parts.vectors += 4 * hidden;
  }
  parts.state_bytes += width * head * 4 + 2 * hidden * 2;
}

void feed_rwkv(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double otherwise = config.type() == "rwkv" ? 4 * hidden : std::floor(hidden * 3.5 / 32) * 32;
  double width = config.number_or({"intermediate_size"}, 0);
  if (width == 0) width = otherwise;
  parts.mlp += 2 * hidden * width + hidden * hidden;
  parts.vectors += 2 * hidden;
}

// Decay, learning rate, gate and value mixing depend on the token, each through a bottleneck of its own.
void mix_rwkv7(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double head = std::max(config.number_or({"head_dim"}, 64), 1.0);
  const double decay = config.need({"decay_low_rank_dim"});
  const double rate = config.need({"a_low_rank_dim"});
  const double gate = config.need({"gate_low_rank_dim"});
  // The first layer's values are what the others mix theirs with.
  const double value = layer.layer == 0 ? 0 : config.need({"v_low_rank_dim"});
  parts.mixer += 4 * hidden * hidden + 2 * hidden * (decay + rate + gate + value);
  parts.vectors += (6 + 3 + 2) * hidden + (value > 0 ? hidden : 0) + norm_size(NormKind::kLayer, hidden);
  parts.state_bytes += hidden * head * 4 + 2 * hidden * 2;
}

void feed_rwkv7(LayerContext& layer) {
  const double hidden = layer.sizes.hidden;
  double width = layer.config.number_or({"intermediate_size"}, 0);
  if (width == 0) width = 4 * hidden;
  layer.parts.mlp += 2 * hidden * width;
  layer.parts.vectors += hidden;
}

// A norm over the embedding, kept in the first layer. The checkpoints hold a head of their own, whatever the config
// says.
void outside_rwkv(HfConfig&, const DecoderFamily&, const DecoderSizes& sizes, Layout& layout) {
  layout.outer_vectors += norm_size(NormKind::kLayer, sizes.hidden);
  if (!layout.tied) return;
  layout.tied = false;
  layout.head = layout.embedding;
  layout.warnings.emplace_back("tie_word_embeddings is set, and RWKV checkpoints hold an output head of their own");
}

}  // namespace rooflined::model
