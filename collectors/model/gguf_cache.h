// The KV cache that a GGUF model's metadata describe: elements per token, layer by layer, and windows.
//
// Handles grouped-query attention with per-layer head counts, windows and chunks whose pattern is in the metadata or
// fixed for the architecture, latent and sparse attention, caches shared between layers, and recurrent state.

#pragma once

#include "collectors/model/gguf_header.h"
#include "collectors/model/model_file.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::model {

struct GgufCache {
  bool known = true;
  std::vector<KvLayers> layers;  // alike ones together
  double state_bytes = 0;        // of one sequence, read at every token
  std::vector<std::string> warnings;
};

// What an architecture is that does not decode with one stack ("an embedding model"); empty for the others.
std::string_view not_a_decoder_architecture(std::string_view architecture);

// `blocks_left_out`: numbers of blocks that a plain pass does not run (next-token prediction).
GgufCache gguf_cache(const GgufMetadata& metadata, const std::string& architecture,
                     const std::set<std::uint64_t>& blocks_left_out);

}  // namespace rooflined::model
