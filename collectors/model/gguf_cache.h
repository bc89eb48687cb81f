// The KV cache that a GGUF model's metadata describe: elements per token, layer by layer, and windows.
//
// Handles grouped-query attention with per-layer head counts, and sliding windows whose pattern is in the metadata or
// fixed for the architecture. Latent attention, recurrent state, caches shared between layers: unknown, and said so.

#pragma once

#include "collectors/model/gguf_header.h"
#include "collectors/model/model_file.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace rooflined::model {

struct GgufCache {
  bool known = true;
  std::vector<KvLayers> layers;  // alike ones together
  std::vector<std::string> warnings;
};

// `blocks_left_out`: numbers of blocks that a plain pass does not run (next-token prediction).
GgufCache gguf_cache(const GgufMetadata& metadata, const std::string& architecture,
                     const std::set<std::uint64_t>& blocks_left_out);

}  // namespace rooflined::model
