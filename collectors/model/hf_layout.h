// What a config.json says about a model's weights and caches, layer by layer: the numbers of parameters by what they
// are.
//
// Made by hf_families.h, turned into bytes and layer groups by hf_model.h. Numbers are doubles: whole, and exact up to
// 2^53. Thread rule: plain data.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rooflined::model {

// What one token leaves in one layer's cache, and how much of it a later token reads.
struct LayerCache {
  double key_elements = 0;
  double value_elements = 0;
  double index_elements = 0;  // of every token, whatever the window (sparse attention)
  std::uint64_t window = 0;   // tokens; 0: all of the context
  std::uint64_t chunk = 0;    // tokens; 0: none

  bool operator==(const LayerCache&) const = default;
};

struct LayerExperts {
  double experts = 0;  // routed ones; 0: a layer without
  double per_token = 0;
  double matrices = 0;  // parameters of one expert
  double vectors = 0;   // its biases

  bool operator==(const LayerExperts&) const = default;
};

// Parameters of one layer. Matrices are kept apart by what a quantisation may leave out; vectors (norms, biases,
// convolutions) are never quantised.
struct LayerParts {
  double mixer = 0;   // attention, or what stands in its place
  double mlp = 0;     // the dense feed-forward part
  double shared = 0;  // experts that every token uses
  double router = 0;
  double vectors = 0;
  double lookup = 0;  // tables of which a token reads one row
  LayerExperts experts;
  std::vector<LayerCache> caches;  // none: a layer that keeps nothing per token, or attends to another layer's
  double state_bytes = 0;          // of one sequence, read at every token: recurrent state and convolution inputs

  double dense() const { return mixer + mlp + shared + router + vectors; }
};

struct Layout {
  double embedding = 0;  // the token table
  double lookup = 0;     // positions and other tables of which a token reads one row
  double head = 0;       // 0 where tied
  double head_read = 0;  // rows of the head in use, times the width: the same where untied
  bool tied = false;
  double outer_matrices = 0;  // read at every pass, and in no layer
  double outer_vectors = 0;   // final norm, head bias
  std::vector<LayerParts> layers;
  std::vector<std::string> warnings;
};

}  // namespace rooflined::model
