// Gemma 3n and 4: per-layer embeddings, caches that layers share, heads of two sizes.

#include "collectors/model/hf_families.h"

#include <string>

namespace rooflined::model {
namespace {

// A table with a row for each token and layer; what a row feeds is read at every pass.
void add_per_layer_inputs(HfConfig& config, const DecoderSizes& sizes, Layout& layout) {
  const double width = config.number_or({"hidden_size_per_layer_input"}, 0);
  const double layers = static_cast<double>(sizes.layers);
  if (width == 0) return;
  layout.lookup += config.number_or({"vocab_size_per_layer_input"}, sizes.vocabulary) * layers * width;
  layout.outer_matrices += sizes.hidden * layers * width;
  layout.outer_vectors += width;
}

void add_per_layer_gate(LayerContext& layer) {
  const double width = layer.config.number_or({"hidden_size_per_layer_input"}, 0);
  if (width == 0) return;
  layer.parts.mlp += 2 * layer.sizes.hidden * width;
  layer.parts.vectors += layer.sizes.hidden;
}

bool shares_cache(LayerContext& layer) {
  return static_cast<double>(layer.layer) + layer.config.number_or({"num_kv_shared_layers"}, 0) >=
         static_cast<double>(layer.sizes.layers);
}

}  // namespace

void extra_gemma3n(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double inputs = config.number_or({"altup_num_inputs"}, 4);
  const double rank = config.number_or({"laurel_rank"}, 64);
  parts.mlp += 2 * hidden * rank + hidden * inputs;
  parts.vectors += hidden + inputs * inputs + inputs * inputs * inputs + hidden + hidden;
  add_per_layer_gate(layer);
}

void outside_gemma3n(HfConfig& config, const DecoderFamily&, const DecoderSizes& sizes, Layout& layout) {
  add_per_layer_inputs(config, sizes, layout);
  const double inputs = config.number_or({"altup_num_inputs"}, 4);
  layout.outer_matrices += 2 * (inputs - 1) * sizes.hidden * sizes.hidden;
}

void mix_gemma4(LayerContext& layer) {
  HfConfig& config = layer.config;
  AttentionSizes sizes = attention_sizes(layer);
  if (layer_type(layer) == "full_attention") {
    sizes.head_dim = config.number_or({"global_head_dim"}, sizes.head_dim);
    sizes.value_dim = sizes.head_dim;
    sizes.value_is_key = config.flag({"attention_k_eq_v"}, false);
    if (sizes.value_is_key) sizes.kv_heads = config.number_or({"num_global_key_value_heads"}, sizes.kv_heads);
  }
  LayerParts& parts = layer.parts;
  if (!shares_cache(layer)) {
    add_attention_of(layer, sizes);
    return;
  }
  parts.mixer += 2 * layer.sizes.hidden * sizes.heads * sizes.head_dim;
  parts.vectors += sizes.head_dim;
}

void feed_gemma4(LayerContext& layer) {
  HfConfig& config = layer.config;
  const bool wide = config.flag({"use_double_wide_mlp"}, false) && shares_cache(layer);
  add_dense_mlp(layer, config.need({"intermediate_size"}, layer.layer) * (wide ? 2 : 1));
  if (!config.flag({"enable_moe_block"}, false)) return;
  add_experts(layer);
  const double hidden = layer.sizes.hidden;
  layer.parts.vectors += 3 * hidden + hidden + layer.parts.experts.experts;
}

void extra_gemma4(LayerContext& layer) {
  add_per_layer_gate(layer);
}

void outside_gemma4(HfConfig& config, const DecoderFamily&, const DecoderSizes& sizes, Layout& layout) {
  add_per_layer_inputs(config, sizes, layout);
}

}  // namespace rooflined::model
