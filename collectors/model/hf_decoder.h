// A decoder-only transformer from a config.json: sizes that most families spell alike, and the parts they are built of.
//
//   DecoderFamily   how one family differs from a plain Llama: norms, biases, ties, windows, and functions for the rest
//   build_decoder   the layout of a model of such a family
//   add_…           the parts: each adds its parameters (and its cache) to a layer
//
// Sources: the modelling files of transformers, and of the models' own repositories where they bring code. Thread rule:
// pure functions over a config.

#pragma once

#include "collectors/model/hf_config.h"
#include "collectors/model/hf_layout.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::model {

enum class NormKind {
  kRms,     // a weight
  kLayer,   // a weight and a bias
  kWeight,  // a LayerNorm without bias: counts as kRms
  kNone,    // without parameters
};

enum class QkNorm { kNone, kPerHead, kWidth, kEachHead };  // of a head, of all heads together, of each head its own

// Which layers have the sliding window, where the config has no list of its own (layer_types).
enum class WindowRule { kNone, kAll, kPeriod, kWhenUsed, kAlternateLocal };

// A flag of the config, or its value in the family.
struct Switch {
  std::string_view key = {};
  bool otherwise = false;
};

struct DecoderSizes {
  double hidden = 0;
  std::size_t layers = 0;
  double vocabulary = 0;
  double heads = 0;
  double head_dim = 0;
  double intermediate = 0;
  double state_element_bytes = 2;  // of a recurrent state
};

struct DecoderFamily;

// One layer while it is built.
struct LayerContext {
  HfConfig& config;
  const DecoderFamily& family;
  const DecoderSizes& sizes;
  std::size_t layer = 0;
  LayerParts& parts;
};

using LayerFunction = void (*)(LayerContext&);
using ModelFunction = void (*)(HfConfig&, const DecoderFamily&, const DecoderSizes&, Layout&);

struct DecoderFamily {
  std::string_view type = {};  // model_type
  NormKind norm = NormKind::kRms;
  double norms = 2;        // of the width, in each layer
  bool plain_mlp = false;  // two matrices where others have three (gate, up, down)
  Switch qkv_bias = {"attention_bias", false};
  Switch out_bias = {"attention_bias", false};
  Switch mlp_bias = {"mlp_bias", false};
  Switch head_bias = {"", false};
  Switch use_qk_norm = {"", true};
  QkNorm qk_norm = QkNorm::kNone;
  bool tied = false;         // where the config does not say
  double positions = -1;     // rows of a learned position table beside the config's own number; below 0: no table
  bool expert_bias = false;  // a bias for each expert in the router
  bool shared_gate = false;  // a gate in front of the shared experts
  WindowRule window = WindowRule::kNone;
  std::uint64_t period = 0;       // kPeriod: of so many layers the last sees the whole context
  LayerFunction mixer = nullptr;  // nullptr: add_attention
  LayerFunction ffn = nullptr;    // nullptr: add_feed_forward
  LayerFunction extra = nullptr;  // what a layer has besides
  ModelFunction outside = nullptr;
  std::string_view defaults = {};  // class defaults of structural keys, as JSON
};

double norm_size(NormKind kind, double width);

// Grouped-query attention, or latent attention where the config has a kv_lora_rank.
void add_attention(LayerContext& layer);
// The dense part or the experts, as the config's keys say for this layer.
void add_feed_forward(LayerContext& layer);
void add_dense_mlp(LayerContext& layer, double width);
void add_experts(LayerContext& layer);
void add_latent_attention(LayerContext& layer);
// Attention of given sizes: `query` counts what the query projection makes (twice the heads where a gate is in it).
struct AttentionSizes {
  double heads = 0;
  double kv_heads = 0;
  double head_dim = 0;
  double value_dim = 0;
  double query_width = 0;  // 0: heads × head_dim
  bool value_is_key = false;
};
void add_attention_of(LayerContext& layer, const AttentionSizes& sizes);
AttentionSizes attention_sizes(LayerContext& layer);

// Recurrent parts (hf_recurrent.cc). Each adds state and convolution inputs too.
struct Mamba2Sizes {
  double inner = 0;
  double heads = 0;
  double state = 0;
  double groups = 1;
  double kernel = 4;
  bool norm = true;
  bool projection_bias = false;
  bool convolution_bias = true;
};
void add_mamba1(LayerContext& layer, double inner, bool inner_norms);
void add_mamba2(LayerContext& layer, const Mamba2Sizes& sizes);
void add_gated_delta_net(LayerContext& layer);
void add_kimi_delta_attention(LayerContext& layer);
void add_lightning_attention(LayerContext& layer);
void add_short_convolution(LayerContext& layer);

// The word in layer_types (or a list like it) for the layer; empty where there is none.
std::string layer_type(LayerContext& layer);
// The window or chunk of the layer's attention.
void set_reach(LayerContext& layer, LayerCache& cache);

Layout build_decoder(HfConfig& config, const DecoderFamily& family);

}  // namespace rooflined::model
