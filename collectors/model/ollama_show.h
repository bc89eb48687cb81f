// What Ollama tells of a model (POST /api/show): a GGUF file's metadata and tensor table as JSON.
//
// Arrays of more than a few elements are left out by the server, so that caches which differ by layer stay unknown.
// Servers before 2025 tell no tensors: then the weights stay unknown. Bounds: those of parse_config_json. Pure
// function.

#pragma once

#include "collectors/model/model_file.h"
#include "metrics/base/result.h"

#include <string_view>

namespace rooflined::model {

Result<ModelFile> describe_ollama_show(std::string_view body);

}  // namespace rooflined::model
