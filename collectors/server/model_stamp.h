// What tells one model file, or folder of them, from another without reading it whole.
//
// Bounded: a mebibyte of a file, 4,096 entries of a folder. Threads: any.

#pragma once

#include "metrics/base/result.h"

#include <cstdint>
#include <string>

namespace rooflined::server {

struct ModelStamp {
  std::string contents;      // sizes, and a hash of the metadata: equal for copies of the same files
  std::int64_t written = 0;  // the newest file, in Unix seconds
};

// A file by its first mebibyte (GGUF: the metadata and the table of tensors), a folder by its config.json and by the
// names and sizes of its weights.
Result<ModelStamp> read_model_stamp(const std::string& path);

}  // namespace rooflined::server
