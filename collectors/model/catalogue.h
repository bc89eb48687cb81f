// Published models by their hub names, for servers that name one and whose files cannot be read.
//
// A generated table of the structural fields of their config.json (catalogue_generate.py). What a repository of that
// name really holds may be quantised otherwise: such names are not found. Thread rule: constants.

#pragma once

#include "collectors/model/model_file.h"

#include <optional>
#include <string_view>

namespace rooflined::model {

// "Qwen/Qwen3-8B", "qwen3-8b-instruct": the owner, upper case and "-instruct" and the like are taken off.
std::optional<ModelFile> catalogue_model(std::string_view hub_name);

// The same by the name of a quantised file of it: "Qwen3-8B-Q4_K_M.gguf". Its bytes are those of the published weights.
std::optional<ModelFile> catalogue_model_of_file(std::string_view file_name);

}  // namespace rooflined::model
