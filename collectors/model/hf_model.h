// A Hugging Face model, a folder or a config.json, as a ModelFile.
//
// The shape comes from config.json (hf_families.h); the bytes from the headers of the safetensors files beside it where
// there are any, else from the shape and `quantization_config`, which a warning says. Thread rule: none of its own.

#pragma once

#include "collectors/model/hf_config.h"
#include "collectors/model/model_file.h"
#include "metrics/base/result.h"

#include <string>
#include <string_view>

namespace rooflined::model {

// Requires: `path` is a folder or a JSON file. A folder without config.json is an error.
Result<ModelFile> read_hf(const std::string& path);

// From the text of a config.json alone.
Result<ModelFile> describe_config(std::string_view text, const std::string& name);

}  // namespace rooflined::model
