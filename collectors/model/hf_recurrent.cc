// Layers with a state of constant size: state space models, linear attention, short convolutions.

#include "collectors/model/hf_decoder.h"

#include <cmath>
#include <string>

namespace rooflined::model {
namespace {

// What a convolution of `kernel` taps keeps of each channel, in the model's 16 bit.
double convolution_state(double channels, double kernel) {
  return channels * (kernel - 1) * 2;
}

}  // namespace

void add_mamba1(LayerContext& layer, double inner, bool inner_norms) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double state = config.number_or({"mamba_d_state", "state_size", "d_state", "ssm_cfg.d_state"}, 16);
  const double kernel = config.number_or({"mamba_d_conv", "conv_kernel", "d_conv", "ssm_cfg.d_conv"}, 4);
  const double rank = config.number_or({"mamba_dt_rank", "time_step_rank", "dt_rank"}, std::ceil(hidden / 16));
  const bool bias = config.flag({"mamba_proj_bias", "use_bias"}, false);
  const bool convolution_bias = config.flag({"mamba_conv_bias", "use_conv_bias"}, true);
  parts.mixer += hidden * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner * hidden;
  parts.vectors += inner * kernel + (convolution_bias ? inner : 0) + inner + inner * state + inner;
  if (bias) parts.vectors += 2 * inner + hidden;
  if (inner_norms) parts.vectors += rank + 2 * state;
  parts.state_bytes += inner * state * layer.sizes.state_element_bytes + convolution_state(inner, kernel);
}

void add_mamba2(LayerContext& layer, const Mamba2Sizes& sizes) {
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double convolved = sizes.inner + 2 * sizes.groups * sizes.state;
  const double projected = sizes.inner + convolved + sizes.heads;
  parts.mixer += hidden * projected + sizes.inner * hidden;
  parts.vectors += convolved * sizes.kernel + (sizes.convolution_bias ? convolved : 0);
  parts.vectors += 3 * sizes.heads + (sizes.norm ? sizes.inner : 0);
  if (sizes.projection_bias) parts.vectors += projected + hidden;
  parts.state_bytes +=
      sizes.inner * sizes.state * layer.sizes.state_element_bytes + convolution_state(convolved, sizes.kernel);
}

void add_gated_delta_net(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double key_heads = config.need({"linear_num_key_heads"});
  const double value_heads = config.need({"linear_num_value_heads"});
  const double key_dim = config.need({"linear_key_head_dim"});
  const double value_dim = config.need({"linear_value_head_dim"});
  const double kernel = config.number_or({"linear_conv_kernel_dim"}, 4);
  const double keys = key_heads * key_dim;
  const double values = value_heads * value_dim;
  parts.mixer += hidden * (2 * keys + 2 * values + 2 * value_heads) + values * hidden;
  parts.vectors += (2 * keys + values) * kernel + 2 * value_heads + value_dim;
  parts.state_bytes += value_heads * key_dim * value_dim * layer.sizes.state_element_bytes +
                       convolution_state(2 * keys + values, kernel);
}

void add_kimi_delta_attention(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double heads = config.need({"linear_attn_config.num_heads"});
  const double dim = config.need({"linear_attn_config.head_dim"});
  const double kernel = config.number_or({"linear_attn_config.short_conv_kernel_size"}, 4);
  const double width = heads * dim;
  // Gates go through a bottleneck of one head, unless they have full rank.
  const double low_rank = hidden * dim + dim * width;
  const double output_gate = config.flag({"linear_attn_config.use_full_rank_gate"}, false) ? hidden * width : low_rank;
  parts.mixer += 3 * hidden * width + low_rank + output_gate + hidden * heads + width * hidden;
  parts.vectors += 3 * width * kernel + heads + width + dim;
  parts.state_bytes += heads * dim * dim * layer.sizes.state_element_bytes + convolution_state(3 * width, kernel);
}

void add_lightning_attention(LayerContext& layer) {
  const AttentionSizes sizes = attention_sizes(layer);
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double width = sizes.heads * sizes.head_dim;
  parts.mixer += hidden * 3 * width + hidden * width + width * hidden;
  parts.vectors += width;
  parts.state_bytes += sizes.heads * sizes.head_dim * sizes.head_dim * layer.sizes.state_element_bytes;
}

void add_short_convolution(LayerContext& layer) {
  HfConfig& config = layer.config;
  LayerParts& parts = layer.parts;
  const double hidden = layer.sizes.hidden;
  const double kernel = config.number_or({"conv_L_cache"}, 3);
  parts.mixer += 4 * hidden * hidden;
  parts.vectors += hidden * kernel;
  if (config.flag({"conv_bias"}, false)) parts.vectors += 5 * hidden;
  parts.state_bytes += convolution_state(hidden, kernel);
}

}  // namespace rooflined::model
