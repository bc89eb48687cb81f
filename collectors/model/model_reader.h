// Reads a model, whatever its format: a GGUF file (any shard), a Hugging Face folder, a config.json.

#pragma once

#include "collectors/model/model_file.h"
#include "metrics/base/result.h"

#include <string>

namespace rooflined::model {

// The error is one line: what, where, and what would be right.
Result<ModelFile> read_model(const std::string& path);

}  // namespace rooflined::model
