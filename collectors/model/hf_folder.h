// Which files of a Hugging Face folder are the model: the index's shards, one file, or the shards without an index.
//
// Copies in other layouts (consolidated files, folders below) are not the model twice. Thread rule: none of its own.

#pragma once

#include "metrics/base/result.h"

#include <string>
#include <vector>

namespace rooflined::model {

// Paths, sorted; empty where the folder has no safetensors at all. A shard that is missing is an error that names it.
Result<std::vector<std::string>> safetensors_files(const std::string& folder);

// The folder of one snapshot: what a hub cache keeps under `models--org--name` (by refs/main, else the only or the
// newest snapshot), or the folder itself.
std::string snapshot_folder(const std::string& folder);

}  // namespace rooflined::model
