// The shape of a model as far as bytes per pass need it: layer groups, and two functions over them.
//
//   W(B)  = dense bytes (head included) + Σ over expert groups of layers·E·(1−(1−k/E)^B)·bytes per expert
//   KV(c) = Σ over KV groups of layers·(bytes per token·reach(c) + index bytes per token·c) + the state per sequence
//   reach(c) = c, min(c, window), or ((c−1) mod chunk)+1
//
// Sources: design.md §3; the expectation over distinct experts assumes uniform routing (an upper bound).
// Plain data, made by collectors/model; thread rule: immutable once made.

#pragma once

#include "metrics/base/units.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rooflined {

// MoE layers of one kind. Shared experts are dense bytes.
struct ExpertGroup {
  std::uint64_t layers = 0;
  std::uint64_t experts = 0;     // E, routed experts in a layer
  double experts_per_token = 0;  // k, 0 < k ≤ E
  double bytes_per_expert = 0;   // one expert in one layer
};

// Layers that cache K and V (or a latent) alike.
struct KvGroup {
  std::uint64_t layers = 0;
  double bytes_per_token = 0;  // one token in one layer
  std::uint64_t window = 0;    // at most so many tokens are read: a sliding window, or the top-k of sparse attention
  std::uint64_t chunk = 0;     // only the tokens since the last multiple of this one are read
  double index_bytes_per_token = 0;  // what sparse attention reads of every token of the context to choose its top-k
};

struct WeightBytes {
  double dense = 0;
  double experts = 0;
  double total() const { return dense + experts; }
};

struct Geometry {
  double dense_bytes = 0;  // read at every pass: repeating dense tensors, norms, routers, shared experts, output head
  double head_bytes = 0;   // the part of dense_bytes that is the output head
  std::vector<ExpertGroup> expert_groups;
  std::vector<KvGroup> kv_groups;
  double state_bytes_per_sequence = 0;
  // False where the weights are known and the cache is not (caveat geometry_partial): KV(c) is then 0.
  bool kv_known = true;
  // True where engines hold the weights in another width than they are stored in (caveat converted): 32-bit
  // checkpoints.
  bool converted = false;
  // Where it comes from, for rooflined_geometry_info: "file", "settings", "server", "catalogue".
  std::string source;
  std::string architecture;

  // W(B). Requires: batch ≥ 1 (fractions are fine).
  WeightBytes weight_bytes(double batch) const;
  // KV(c). `context` in tokens, at least 0.
  double kv_bytes(double context) const;
  // Σ KV(c) for c = context_first, context_first + 1, …, `count` terms, in constant time.
  double kv_bytes_sum(double context_first, double count) const;
  // KV bytes per token over all layers, windows and index caches aside.
  double kv_bytes_per_token() const;
};

}  // namespace rooflined
