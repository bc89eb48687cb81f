// What a tensor is for, from its name: the one place that knows how GGUF names them (ggml docs/gguf.md, llama.cpp
// src/llama-arch.cpp). Pure functions over strings.

#pragma once

#include <cstdint>
#include <string_view>

namespace rooflined::model {

enum class TensorRole {
  kEmbedding,     // token_embd: one row a token, unless it is the output head as well
  kLookup,        // other tables of which a token reads a row or nothing
  kHead,          // output.*
  kRepeating,     // blk.N.*, read at every pass
  kExpert,        // routed experts, merged: the last dimension counts them
  kSingleExpert,  // the old layout, one tensor per expert
  kConstant,      // rotary frequencies: read, and no parameters
  kOther,         // output_norm and the like: read at every pass
  kForeign,       // of an encoder or a vision tower: not part of decode
};

struct TensorUse {
  TensorRole role = TensorRole::kOther;
  bool in_block = false;
  std::uint64_t block = 0;       // where in_block
  bool next_token_part = false;  // its block predicts further tokens (MTP), and a plain pass leaves it out
  bool chunk_expert = false;     // kExpert of a second, smaller set in the layer
};

TensorUse tensor_use(std::string_view name);

}  // namespace rooflined::model
