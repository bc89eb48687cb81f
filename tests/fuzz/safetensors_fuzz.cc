// Any bytes as a safetensors file: header, roles of its tensors, weights.

#include "collectors/model/hf_layout.h"
#include "collectors/model/hf_weights.h"
#include "collectors/model/safetensors_header.h"
#include "metrics/base/result.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflined;
  model::MemorySource source(std::as_bytes(std::span<const std::uint8_t>(data, size)));
  model::Layout layout;
  layout.layers.resize(2);
  layout.layers[1].experts = {4, 2, 100, 0};
  model::CheckpointWeights weights(&layout, 4);
  const auto summary = model::read_safetensors_header(
      source, "fuzz.safetensors", [&](const model::SafetensorsTensor& tensor) { weights.add(tensor); });
  if (!summary) return 0;
  model::ModelFile model;
  weights.finish(model);
  if (const auto geometry = model::make_geometry(model)) {
    ROOFLINED_CHECK(std::isfinite(geometry->weight_bytes(64).total()));
    ROOFLINED_CHECK(geometry->weight_bytes(1).experts >= 0);
  }
  return 0;
}
