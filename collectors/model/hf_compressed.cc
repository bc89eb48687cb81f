// DeepSeek V4: a window of plain keys, and behind it entries that stand for many tokens each.

#include "collectors/model/hf_families.h"

#include <string>

namespace rooflined::model {
namespace {

constexpr double kSparseRatio = 4;  // tokens in an entry of the layers that choose their entries by an indexer

// What makes one entry of `width` of several tokens: keys, gates, a bias by place, a norm.
void add_compressor(LayerParts& parts, double hidden, double width, double ratio, double overlap) {
  parts.mixer += 2 * hidden * overlap * width;
  parts.vectors += ratio * overlap * width + width;
}

void add_far_cache(LayerContext& layer, double width, double ratio) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  LayerCache far;
  far.key_elements = width / ratio;
  const bool sparse = ratio == kSparseRatio;
  // The finer entries overlap: two series of them are kept apart.
  add_compressor(parts, hidden, width, ratio, sparse ? 2 : 1);
  if (sparse) {
    const double heads = config.need({"index_n_heads"});
    const double dim = config.need({"index_head_dim"});
    add_compressor(parts, hidden, dim, ratio, 2);
    parts.mixer += config.need({"q_lora_rank"}) * heads * dim + hidden * heads;
    far.window = static_cast<std::uint64_t>(config.need({"index_topk"}) * ratio);
    far.index_elements = dim / ratio;
  }
  parts.caches.push_back(far);
}

// Several residual streams, mixed before and after each part.
double hyper_connection(double streams, double hidden) {
  const double outputs = streams * (2 + streams);
  return streams * hidden * outputs + outputs + 3;
}

}  // namespace

void mix_deepseek_v4(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double heads = config.need({"num_attention_heads"});
  const double width = config.need({"head_dim"});
  const double query = config.need({"q_lora_rank"});
  const double groups = config.need({"o_groups"});
  const double output = config.need({"o_lora_rank"});
  parts.mixer += hidden * query + query * heads * width + hidden * width;
  parts.mixer += heads * width * output + groups * output * hidden;
  parts.vectors += query + width + heads;
  parts.vectors += 2 * hyper_connection(config.number_or({"hc_mult"}, 1), hidden);
  LayerCache near;
  near.key_elements = width;
  near.window = static_cast<std::uint64_t>(config.need({"sliding_window"}));
  parts.caches.push_back(near);
  const double ratio = config.number_or({"compress_ratios"}, 0, layer.layer);
  if (ratio >= 1) add_far_cache(layer, width, ratio);
}

void outside_deepseek_v4(HfConfig& config, const DecoderFamily&, const DecoderSizes& sizes, Layout& layout) {
  const double streams = config.number_or({"hc_mult"}, 1);
  layout.outer_vectors += streams * sizes.hidden * streams + streams + 1;
  // The first layers choose experts by the token: a table, of which a token reads one row.
  const double hashed = config.number_or({"num_hash_layers"}, 0);
  layout.lookup += hashed * sizes.vocabulary * config.number_or({"num_experts_per_tok"}, 0);
}

}  // namespace rooflined::model
