#include "collectors/model/model_reader.h"

#include "collectors/model/gguf_model.h"
#include "collectors/model/hf_model.h"

#include <filesystem>
#include <system_error>

namespace rooflined::model {

Result<ModelFile> read_model(const std::string& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  if (folder || path.ends_with(".json") || path.ends_with(".safetensors")) return read_hf(path);
  return read_gguf(path);
}

}  // namespace rooflined::model
