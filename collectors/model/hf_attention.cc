// Attention of every kind that caches: grouped-query, latent, with or without windows.

#include "collectors/model/hf_decoder.h"

#include <algorithm>
#include <array>
#include <string>

namespace rooflined::model {
namespace {

constexpr auto kHeads =
    std::to_array<std::string_view>({"num_attention_heads", "n_head", "num_heads", "n_heads", "num_query_heads"});
constexpr auto kKvHeads =
    std::to_array<std::string_view>({"num_key_value_heads", "num_kv_heads", "n_head_kv", "attn_config.kv_n_heads",
                                     "n_kv_heads", "kv_n_heads", "num_attention_groups"});
constexpr auto kHeadDim = std::to_array<std::string_view>({"head_dim", "attention_head_dim", "kv_channels", "d_head"});
constexpr auto kWindow =
    std::to_array<std::string_view>({"sliding_window", "sliding_window_size", "attention_window_size", "window_size"});

bool on(HfConfig& config, const Switch& either) {
  return either.key.empty() ? either.otherwise : config.flag({either.key}, either.otherwise);
}

// Layers that attend to another layer's keys and values have no cache of their own.
bool shares_cache(LayerContext& layer) {
  const double shared = layer.config.number_or({"num_kv_shared_layers"}, 0);
  return static_cast<double>(layer.layer) >= static_cast<double>(layer.sizes.layers) - shared;
}

// Cross-layer attention: of each so many layers the first has keys and values, and the others no projections either.
bool follows_in_cross_layer_group(LayerContext& layer) {
  if (!layer.config.flag({"use_cla"}, false)) return false;
  const double factor = std::clamp(layer.config.number_or({"cla_share_factor"}, 1), 1.0, 1e6);
  return layer.layer % static_cast<std::size_t>(factor) != 0;
}

// `queries_only`: the layer has no keys to norm.
double norm_of_heads(QkNorm kind, const AttentionSizes& sizes, bool queries_only) {
  const double key_heads = queries_only ? 0 : sizes.kv_heads;
  switch (kind) {
    case QkNorm::kNone:
      return 0;
    case QkNorm::kPerHead:
      return (queries_only ? 1 : 2) * sizes.head_dim;
    case QkNorm::kWidth:
    case QkNorm::kEachHead:
      return (sizes.heads + key_heads) * sizes.head_dim;
  }
  return 0;
}

// True for "sliding" layers, false for the others; by whatever list or pattern the config has, else by the family's.
bool is_windowed(LayerContext& layer) {
  HfConfig& config = layer.config;
  const std::size_t index = layer.layer;
  if (const std::string type = layer_type(layer); !type.empty()) {
    return type.find("sliding") != std::string::npos || type.find("local") != std::string::npos || type == "swa";
  }
  if (config.has({"hybrid_layer_pattern"})) return config.number_or({"hybrid_layer_pattern"}, 0, index) == 1;
  if (!config.flag({"use_sliding_window", "use_swa"}, true)) return false;
  constexpr auto kPattern = std::to_array<std::string_view>({"sliding_window_pattern", "_sliding_window_pattern"});
  if (const std::string pattern = config.text(kPattern); !pattern.empty()) {
    return pattern[index % pattern.size()] == 'L';
  }
  std::uint64_t period = layer.family.window == WindowRule::kPeriod ? layer.family.period : 0;
  if (const auto number = config.number(kPattern); number && *number >= 1) period = static_cast<std::uint64_t>(*number);
  if (const auto number = config.number({"global_attn_every_n_layers"}); number && *number >= 1) {
    period = static_cast<std::uint64_t>(*number);
  }
  if (period > 0) return (index + 1) % period != 0;
  if (layer.family.window == WindowRule::kWhenUsed) {
    return config.flag({"use_sliding_window"}, false) &&
           static_cast<double>(index) >= config.number_or({"max_window_layers"}, 0);
  }
  if (layer.family.window == WindowRule::kAlternateLocal) return index % 2 == 1;
  return layer.family.window == WindowRule::kAll;
}

// Sparse attention: a small attention over keys of its own chooses the tokens that the large one reads.
void add_indexer(LayerContext& layer, double query_latent, double top, LayerCache& cache) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double index_dim = config.need({"index_head_dim"});
  const double index_heads = config.need({"index_n_heads"});
  parts.mixer += query_latent * index_heads * index_dim + hidden * index_dim + hidden * index_heads;
  parts.vectors += norm_size(NormKind::kLayer, index_dim);
  cache.window = static_cast<std::uint64_t>(top);
  cache.index_elements = index_dim;
}

}  // namespace

std::string layer_type(LayerContext& layer) {
  return layer.config.word_at(
      {"layer_types", "layers_block_type", "block_types", "layer_block_type", "attention_layers"}, layer.layer);
}

void set_reach(LayerContext& layer, LayerCache& cache) {
  if (layer_type(layer).find("chunked") != std::string::npos) {
    cache.chunk = static_cast<std::uint64_t>(layer.config.number_or({"attention_chunk_size"}, 8192));
  } else if (is_windowed(layer)) {
    cache.window = static_cast<std::uint64_t>(layer.config.number_or(kWindow, 0, layer.layer));
  }
}

AttentionSizes attention_sizes(LayerContext& layer) {
  HfConfig& config = layer.config;
  AttentionSizes sizes;
  sizes.heads = config.need(kHeads, layer.layer);
  sizes.kv_heads = config.number_or(kKvHeads, sizes.heads, layer.layer);
  if (const auto groups = config.number({"multi_query_group_num"})) {
    sizes.kv_heads = config.flag({"multi_query_attention"}, true) ? *groups : sizes.heads;
  } else if (!config.has(kKvHeads) && config.flag({"multi_query"}, false)) {
    sizes.kv_heads = 1;
  }
  sizes.head_dim = config.number_or(kHeadDim, 0, layer.layer);
  if (sizes.head_dim == 0) sizes.head_dim = layer.sizes.head_dim;
  sizes.value_dim = config.number_or({"v_head_dim"}, sizes.head_dim);
  return sizes;
}

void add_attention_of(LayerContext& layer, const AttentionSizes& sizes) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const bool follows = follows_in_cross_layer_group(layer);
  const double hidden = layer.sizes.hidden;
  const double query = sizes.query_width > 0 ? sizes.query_width : sizes.heads * sizes.head_dim;
  const double key = sizes.kv_heads * sizes.head_dim;
  const double value = sizes.kv_heads * sizes.value_dim;
  const double projected = query + (follows ? 0 : key + (sizes.value_is_key ? 0 : value));
  parts.mixer += hidden * projected + sizes.heads * sizes.value_dim * hidden;
  if (on(config, layer.family.qkv_bias)) parts.vectors += projected;
  if (on(config, layer.family.out_bias)) parts.vectors += hidden;
  if (on(config, layer.family.use_qk_norm)) {
    parts.vectors += norm_of_heads(layer.family.qk_norm, sizes, follows);
  }
  if (follows || shares_cache(layer)) return;
  LayerCache cache;
  cache.key_elements = key;
  cache.value_elements = value;
  set_reach(layer, cache);
  parts.caches.push_back(cache);
}

void add_latent_attention(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double heads = config.need(kHeads);
  const double latent = config.need({"kv_lora_rank"});
  const double rope = config.number_or({"qk_rope_head_dim"}, 0);
  const double query_dim = config.need({"qk_nope_head_dim"}) + rope;
  const double value_dim = config.need({"v_head_dim", "qk_nope_head_dim"});
  const double query_latent = config.number_or({"q_lora_rank"}, 0);
  if (query_latent > 0) {
    parts.mixer += hidden * query_latent + query_latent * heads * query_dim;
    parts.vectors += query_latent;
  } else {
    parts.mixer += hidden * heads * query_dim;
  }
  parts.mixer +=
      hidden * (latent + rope) + latent * heads * (query_dim - rope + value_dim) + heads * value_dim * hidden;
  parts.vectors += latent;
  if (config.flag({"attention_bias"}, false)) parts.vectors += query_latent + latent + rope + hidden;
  if (config.flag({"mla_use_output_gate"}, false)) parts.mixer += hidden * heads * value_dim;
  LayerCache cache;
  cache.key_elements = latent + rope;
  set_reach(layer, cache);
  const double top = config.number_or({"index_topk"}, 0);
  if (top > 0) add_indexer(layer, query_latent, top, cache);
  parts.caches.push_back(cache);
}

void add_attention(LayerContext& layer) {
  if (layer.config.number_or({"kv_lora_rank"}, 0) > 0) {
    add_latent_attention(layer);
  } else {
    add_attention_of(layer, attention_sizes(layer));
  }
}

}  // namespace rooflined::model
