// What the files of a model say about it, whatever their format, and the geometry that follows.
//
//   weights:  exact bytes by what a decode pass reads, from the tensor table
//   cache:    elements per token and layer group; how many bytes those are depends on the cache types of the server
//
// Honest or absent: what could not be known is flagged (weights_known, kv_known) and named in `warnings`; nothing is
// guessed. Thread rule: plain data.

#pragma once

#include "collectors/model/ggml_types.h"
#include "metrics/base/result.h"
#include "metrics/base/units.h"
#include "metrics/geometry.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::model {

// MoE layers whose routed experts are alike. Shared experts are dense bytes.
struct ExpertLayers {
  std::uint64_t layers = 0;
  std::uint64_t experts = 0;
  double experts_per_token = 0;  // up to `experts`; a fraction where some choices of the router compute nothing
  double bytes_per_expert = 0;
  double parameters_per_expert = 0;
};

// Layers that cache alike.
struct KvLayers {
  std::uint64_t layers = 0;
  double key_elements = 0;  // per token and layer; a fraction where one entry stands for several tokens
  double value_elements = 0;
  std::uint64_t window = 0;   // tokens; 0: all of the context
  std::uint64_t chunk = 0;    // tokens; 0: none
  double index_elements = 0;  // read of every token, to choose the `window` tokens of sparse attention
};

// A computed number of bytes as an integer, within what one can be: shapes come from outside.
Bytes whole_bytes(double bytes);

// Adds one layer to the group of its like.
void add_kv_layers(std::vector<KvLayers>& groups, const KvLayers& one);
void add_expert_layers(std::vector<ExpertLayers>& groups, const ExpertLayers& one);

struct TypeShare {
  std::string type;
  Bytes bytes = 0;
  double share = 0;
};

struct ModelFile {
  std::string format;  // "gguf", "safetensors", "config.json"
  std::string architecture;
  std::string name;   // general.name, cleaned
  std::string label;  // the quantisation that the file's name claims ("Q4_K_M"), else the one its metadata does
  std::uint64_t files = 0;
  Bytes file_bytes = 0;
  Bytes tensor_bytes = 0;  // all tensors; llama.cpp's `meta.size`
  bool cut = false;        // tensor data are missing at a file's end
  // Stored in 32 bit, for the most part: engines convert such weights to 16 bit when they load them (convert_weights).
  bool stored_wide = false;

  double parameters_total = 0;   // without next-token-prediction layers and rotary constants
  double parameters_active = 0;  // for one token, embedding included
  double dense_parameters = 0;   // read at every pass, head included
  double head_parameters = 0;
  bool tied_embeddings = false;

  bool weights_known = true;
  Bytes dense_bytes = 0;  // read at every pass, head included
  Bytes head_bytes = 0;
  Bytes streamed_bytes = 0;  // repeating layers, norms and head with all experts: the most that one pass can read
  std::vector<ExpertLayers> expert_layers;

  bool kv_known = true;
  std::vector<KvLayers> kv_layers;
  double state_bytes_per_sequence = 0;

  // Over the quantised tensors of the repeating layers (all their matrices where none is quantised), by bytes
  // descending.
  std::vector<TypeShare> composition;
  std::optional<double> on_label_share;
  std::optional<double> bits_per_weight;

  std::vector<std::string> warnings;
};

// The weights as an engine holds them that converted them at load: `bits` for each one, and 16 for the output head.
// Requires: 1 ≤ bits ≤ 64.
void convert_weights(ModelFile& model, double bits);

// The same for a quantised file of which only the mean is known: `bits` for each weight, the head's too.
void scale_weights(ModelFile& model, double bits);

// Requires: both come from kv_cache_type().
struct KvCacheTypes {
  const GgmlType* key = kv_cache_type("f16");
  const GgmlType* value = kv_cache_type("f16");
};

// "T" or "K,V", as in --kv-cache-type and the settings.
Result<KvCacheTypes> parse_kv_cache_types(std::string_view text);

// nullopt where the weights are not known. `source` is "file".
std::optional<Geometry> make_geometry(const ModelFile& model, const KvCacheTypes& types = {});

}  // namespace rooflined::model
