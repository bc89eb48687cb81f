// Families with a part that no other has.

#include "collectors/model/hf_families.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace rooflined::model {

// Three generations: multi-query with one norm, grouped with two, and the first ones with a norm before each part.
void mix_falcon(LayerContext& layer) {
  HfConfig& config = layer.config;
  AttentionSizes sizes = attention_sizes(layer);
  const bool legacy_grouped = config.type() == "RefinedWeb" || config.has({"n_head_kv"});
  const bool grouped = config.flag({"new_decoder_architecture"}, legacy_grouped);
  if (!grouped) {
    sizes.kv_heads = config.flag({"multi_query"}, true) ? 1 : sizes.heads;
  }
  double norms = 2;
  if (grouped) {
    norms = config.number_or({"num_ln_in_parallel_attn"}, 2);
  } else if (config.flag({"parallel_attn"}, true)) {
    norms = 1;
  }
  layer.parts.vectors += norms * norm_size(NormKind::kLayer, layer.sizes.hidden);
  add_attention_of(layer, sizes);
}

void extra_stablelm(LayerContext& layer) {
  if (layer.config.flag({"use_parallel_residual"}, false)) return;
  layer.parts.vectors += norm_size(NormKind::kLayer, layer.sizes.hidden);
}

// A norm over the embedding.
void outside_bloom(HfConfig&, const DecoderFamily&, const DecoderSizes& sizes, Layout& layout) {
  layout.outer_vectors += norm_size(NormKind::kLayer, sizes.hidden);
}

void outside_opt(HfConfig& config, const DecoderFamily&, const DecoderSizes& sizes, Layout& layout) {
  if (!config.flag({"do_layer_norm_before"}, true)) layout.outer_vectors = 0;
  const double width = config.number_or({"word_embed_proj_dim"}, sizes.hidden);
  if (width == sizes.hidden) return;
  layout.embedding = sizes.vocabulary * width;
  if (!layout.tied) layout.head = layout.embedding;
  layout.outer_matrices += 2 * width * sizes.hidden;
}

void outside_mpt(HfConfig& config, const DecoderFamily&, const DecoderSizes& sizes, Layout& layout) {
  const bool alibi = config.flag({"attn_config.alibi"}, true);
  if (alibi || !config.flag({"learned_pos_emb"}, true)) return;
  layout.lookup += sizes.hidden * config.need({"max_seq_len"});
}

// The width in the config counts both halves of the gated part.
void feed_qwen1(LayerContext& layer) {
  add_dense_mlp(layer, layer.config.need({"intermediate_size"}) / 2);
}

// Three layers of four attend within chunks; the fourth, without positions, to everything.
void mix_llama4(LayerContext& layer) {
  HfConfig& config = layer.config;
  add_attention(layer);
  if (layer.parts.caches.empty() || !layer_type(layer).empty()) return;
  const double interval = std::max(config.number_or({"no_rope_layer_interval"}, 4), 1.0);
  const double by_rule = std::fmod(static_cast<double>(layer.layer + 1), interval) == 0 ? 0 : 1;
  if (config.number_or({"no_rope_layers"}, by_rule, layer.layer) != 0) {
    layer.parts.caches.back().chunk = static_cast<std::uint64_t>(config.number_or({"attention_chunk_size"}, 8192));
  }
}

void feed_llama4(LayerContext& layer) {
  add_feed_forward(layer);
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  if (parts.experts.experts > 0) {
    parts.shared += 3 * hidden * layer.config.need({"intermediate_size"});
  } else {
    parts.mlp = 3 * hidden * layer.config.need({"intermediate_size_mlp", "intermediate_size"});
  }
}

// Experts and router with biases, and a sink for each head.
void feed_gpt_oss(LayerContext& layer) {
  add_experts(layer);
  LayerParts& parts = layer.parts;
  parts.experts.vectors = 2 * layer.sizes.intermediate + layer.sizes.hidden;
  parts.vectors += parts.experts.experts + layer.config.need({"num_attention_heads"});
}

// Experts beside a dense part that is as wide as the model.
void feed_arctic(LayerContext& layer) {
  add_feed_forward(layer);
  LayerParts& parts = layer.parts;
  const bool dense_beside = layer.config.flag({"use_residual", "parallel_attn_mlp_res"}, true);
  if (parts.experts.experts == 0) return;
  if (dense_beside) {
    parts.mlp += 3 * layer.sizes.hidden * layer.sizes.hidden;
  } else {
    parts.vectors -= layer.sizes.hidden;
  }
}

namespace {

// The entry of one layer of Nemotron's per-layer search.
const nlohmann::json* block_part(LayerContext& layer, const char* part) {
  const nlohmann::json* blocks = layer.config.find({"block_configs"});
  if (blocks == nullptr || !blocks->is_array() || layer.layer >= blocks->size()) return nullptr;
  const nlohmann::json& block = (*blocks)[layer.layer];
  if (!block.is_object()) return nullptr;
  const auto found = block.find(part);
  return found == block.end() || !found->is_object() ? nullptr : &*found;
}

double block_number(const nlohmann::json& part, const char* key) {
  const auto found = part.find(key);
  if (found == part.end()) return 0;
  if (found->is_boolean()) return found->get<bool>() ? 1 : 0;
  return found->is_number() ? std::clamp(found->get<double>(), 0.0, 1e9) : 0;
}

}  // namespace

void mix_deci(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const nlohmann::json* attention = block_part(layer, "attention");
  if (attention == nullptr) {
    config.need({"block_configs"}, layer.sizes.layers);
    return;
  }
  if (block_number(*attention, "no_op") != 0) {
    parts.vectors -= hidden;
    return;
  }
  if (block_number(*attention, "replace_with_linear") != 0) {
    parts.mixer += hidden * hidden;
    return;
  }
  AttentionSizes sizes = attention_sizes(layer);
  const double group = block_number(*attention, "n_heads_in_group");
  const double kv_heads = block_number(*attention, "num_key_value_heads");
  if (kv_heads > 0) {
    sizes.kv_heads = kv_heads;
  } else if (group > 0) {
    sizes.kv_heads = std::floor(sizes.heads / group);
  }
  add_attention_of(layer, sizes);
  if (!parts.caches.empty()) {
    parts.caches.back().window = static_cast<std::uint64_t>(block_number(*attention, "window_length"));
  }
}

void feed_deci(LayerContext& layer) {
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const nlohmann::json* ffn = block_part(layer, "ffn");
  if (ffn == nullptr) return;
  if (block_number(*ffn, "no_op") != 0) {
    parts.vectors -= hidden;
    return;
  }
  if (block_number(*ffn, "replace_with_linear") != 0) {
    parts.mlp += hidden * hidden;
    return;
  }
  double width = block_number(*ffn, "intermediate_size");
  if (width == 0) width = std::ceil(std::floor(2 * block_number(*ffn, "ffn_mult") * hidden / 3) / 256) * 256;
  add_dense_mlp(layer, width);
}

// One key and value head for all queries, and queries made through a bottleneck.
void mix_step3(LayerContext& layer) {
  HfConfig& config = layer.config;
  AttentionSizes sizes = attention_sizes(layer);
  const double shared = config.number_or({"share_q_dim"}, 0);
  if (shared > 0) {
    LayerParts& parts = layer.parts;
    parts.mixer += shared * sizes.heads * sizes.head_dim;
    parts.vectors += shared;
    sizes.query_width = shared;
  }
  add_attention_of(layer, sizes);
}

// Layers with a window have heads of their own number and size, and a sink each.
void mix_mimo_v2(LayerContext& layer) {
  HfConfig& config = layer.config;
  AttentionSizes sizes = attention_sizes(layer);
  const bool windowed = config.number_or({"hybrid_layer_pattern"}, 0, layer.layer) == 1;
  if (windowed) {
    sizes.heads = config.number_or({"swa_num_attention_heads"}, sizes.heads);
    sizes.kv_heads = config.number_or({"swa_num_key_value_heads"}, sizes.kv_heads);
    sizes.head_dim = config.number_or({"swa_head_dim"}, sizes.head_dim);
    sizes.value_dim = config.number_or({"swa_v_head_dim"}, sizes.value_dim);
  }
  add_attention_of(layer, sizes);
  const bool sinks = windowed ? config.flag({"add_swa_attention_sink_bias"}, false)
                              : config.flag({"add_full_attention_sink_bias"}, false);
  if (sinks) layer.parts.vectors += sizes.heads;
}

// Two attentions and two dense parts in each layer, with experts beside them; some experts do nothing.
void mix_longcat(LayerContext& layer) {
  add_latent_attention(layer);
  add_latent_attention(layer);
}

void feed_longcat(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double width = config.need({"ffn_hidden_size"});
  add_dense_mlp(layer, width);
  add_dense_mlp(layer, width);
  add_experts(layer);
  const double idle = config.number_or({"zero_expert_num"}, 0);
  parts.router += layer.sizes.hidden * idle;
  parts.vectors += parts.experts.experts + idle;
  // Of the experts that the router chooses, its share of real ones: on average, with uniform routing.
  parts.experts.per_token *= parts.experts.experts / std::max(parts.experts.experts + idle, 1.0);
}

// Feed-forward parts that widen with depth, in steps.
void feed_openelm(LayerContext& layer) {
  HfConfig& config = layer.config;
  const double step = std::max(config.number_or({"ffn_dim_divisor"}, 256), 1.0);
  const double wanted = config.need({"ffn_multipliers"}, layer.layer) * layer.sizes.hidden;
  double width = std::max(step, std::floor((wanted + step / 2) / step) * step);
  if (width < 0.9 * wanted) width += step;
  add_dense_mlp(layer, width);
}

// A norm before each output projection.
void extra_bitnet(LayerContext& layer) {
  layer.parts.vectors += layer.sizes.hidden + layer.sizes.intermediate;
}

// Two numbers of the activation.
void extra_apertus(LayerContext& layer) {
  layer.parts.vectors += 2;
}

}  // namespace rooflined::model
