// Any bytes as a config.json, and as what Ollama tells of a model: shape, weights, geometry. Whatever comes out must be
// finite.

#include "collectors/model/hf_model.h"
#include "collectors/model/model_file.h"
#include "collectors/model/ollama_show.h"
#include "metrics/base/result.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace rooflined;

void check(model::ModelFile& model) {
  for (const double bits : {0.0, 8.0}) {
    if (bits > 0) model::convert_weights(model, bits);
    const auto geometry = model::make_geometry(model);
    if (!geometry) continue;
    ROOFLINED_CHECK(std::isfinite(geometry->weight_bytes(1).total()));
    ROOFLINED_CHECK(std::isfinite(geometry->weight_bytes(64).total()));
    ROOFLINED_CHECK(std::isfinite(geometry->kv_bytes_sum(4096, 100)));
    ROOFLINED_CHECK(geometry->weight_bytes(1).experts >= 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto model = model::describe_config(text, "config.json")) check(*model);
  if (auto model = model::describe_ollama_show(text)) check(*model);
  return 0;
}
