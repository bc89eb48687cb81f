// Any bytes as a config.json: shape, weights, geometry. Whatever comes out must be finite.

#include "collectors/model/hf_model.h"
#include "collectors/model/model_file.h"
#include "metrics/base/result.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflined;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Result<model::ModelFile> model = model::describe_config(text, "config.json");
  if (!model) return 0;
  for (const double bits : {0.0, 8.0}) {
    if (bits > 0) model::convert_weights(*model, bits);
    const auto geometry = model::make_geometry(*model);
    if (!geometry) continue;
    ROOFLINED_CHECK(std::isfinite(geometry->weight_bytes(1).total()));
    ROOFLINED_CHECK(std::isfinite(geometry->weight_bytes(64).total()));
    ROOFLINED_CHECK(std::isfinite(geometry->kv_bytes_sum(4096, 100)));
    ROOFLINED_CHECK(geometry->weight_bytes(1).experts >= 0);
  }
  return 0;
}
