// The model that the simulated engine pretends to run: a model file of any format, or a shape that is built in.
//
// A preset can be written as a GGUF file of its full size whose tensor data are a hole. Built-in or file, the geometry
// comes from collectors/model, as it does for the daemon.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/units.h"
#include "metrics/geometry.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::simulator {

struct Model {
  Geometry geometry;
  std::string name;  // what the server calls it
  std::string path;  // absolute; empty for a built-in one
  Bytes tensor_bytes = 0;
  double parameters = 0;
};

std::vector<std::string> preset_names();

// `name` is "builtin:PRESET", "builtin:HUB-NAME" (of the daemon's catalogue), or the path of whatever `inspect` reads.
// `kv_cache_type` is "T" or "K,V".
Result<Model> load_model(const std::string& name, std::string_view kv_cache_type = "f16");

// An existing file is replaced.
Status write_model(std::string_view preset, const std::string& path);

}  // namespace rooflined::simulator
