// Any bytes as a GGUF file: header, description, geometry. Whatever comes out must be finite.

#include "collectors/model/gguf_model.h"
#include "metrics/base/result.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflined;
  model::MemorySource source(std::as_bytes(std::span<const std::uint8_t>(data, size)));
  Result<model::GgufHeader> header = model::read_gguf_header(source, "fuzz.gguf");
  if (!header) return 0;
  std::vector<model::GgufShard> shards;
  shards.push_back({std::move(*header), size});
  const model::ModelFile model = model::describe_gguf(shards, "fuzz-Q4_K_M.gguf");
  if (const auto geometry = model::make_geometry(model)) {
    ROOFLINED_CHECK(std::isfinite(geometry->weight_bytes(1).total()));
    ROOFLINED_CHECK(std::isfinite(geometry->weight_bytes(64).total()));
    ROOFLINED_CHECK(std::isfinite(geometry->kv_bytes(4096)));
    ROOFLINED_CHECK(geometry->weight_bytes(1).experts >= 0);
  }
  return 0;
}
