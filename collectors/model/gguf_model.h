// A GGUF model, one file or all shards of one, as a ModelFile.
//
// What a decode pass reads follows from the tensor names alone, so a new architecture needs no code for its weights;
// its cache does (gguf_cache.h). Memory and time: those of the headers. Thread rule: none of its own.

#pragma once

#include "collectors/model/gguf_header.h"
#include "collectors/model/model_file.h"
#include "metrics/base/result.h"

#include <span>
#include <string>
#include <string_view>

namespace rooflined::model {

// True where the file opens with a GGUF's magic.
bool is_gguf(const std::string& path);

// Any shard stands for the model; one that is missing is an error that names it.
Result<ModelFile> read_gguf(const std::string& path, const GgufLimits& limits = {});

// The same from headers already read: the first shard's is first. `file_name` is where the label is looked for;
// `file_bytes` belongs to each header.
struct GgufShard {
  GgufHeader header;
  Bytes file_bytes = 0;
};
ModelFile describe_gguf(std::span<const GgufShard> shards, std::string_view file_name);

// The quantisation that a file's name claims ("Qwen2.5-0.5B-Instruct-Q4_K_M.gguf" → "Q4_K_M"); empty for none.
std::string label_of_file_name(std::string_view file_name);
// The tensor type that a label stands for (Q4_K_M → Q4_K); nullptr where it is a mixture without one (IQ3_M).
const GgmlType* type_of_label(std::string_view label);

}  // namespace rooflined::model
