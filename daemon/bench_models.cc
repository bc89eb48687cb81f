#include "daemon/bench_models.h"

#include "collectors/model/model_reader.h"
#include "metrics/base/utf8.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace rooflined::daemon {
namespace {

namespace fs = std::filesystem;

void take_bytes(const model::ModelFile& file, BytesConvention convention, PreparedModel& prepared) {
  BenchModel& model = prepared.model;
  model.moe = !file.expert_layers.empty();
  prepared.geometry = model::make_geometry(file);
  if (convention == BytesConvention::kFile && !model.moe) {
    model.bytes = static_cast<double>(file.file_bytes);
    model.bytes_source = "file size";
  } else if (prepared.geometry) {
    // Of a mixture of experts one token reads those that were chosen for it, in either convention: its size would make
    // it read several times what it does.
    model.bytes = prepared.geometry->weight_bytes(1).total();
    model.bytes_source = model.moe ? "dense tensors and active experts" : "streamed tensors";
  }
}

}  // namespace

Result<PreparedModel> prepare_model(const std::string& path, BytesConvention convention) {
  PreparedModel prepared;
  prepared.model.path = path;
  const fs::path name = fs::path(path).filename();
  prepared.model.name = to_label((name.extension() == ".gguf" ? name.stem() : name).string(), 60);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return Error{ErrorCode::kNotFound, path, "no such file (a GGUF file was expected: llama-bench reads no other)"};
  }
  const auto file = model::read_model(path);
  if (file.ok()) {
    take_bytes(*file, convention, prepared);
    return prepared;
  }
  if (convention != BytesConvention::kFile) {
    return Error{file.error().code, file.error().where,
                 file.error().detail + "; --bytes file goes on with the size of the file"};
  }
  prepared.model.bytes = static_cast<double>(fs::file_size(path, error));
  prepared.model.bytes_source = "file size";
  return prepared;
}

void add_kv_bytes(PreparedModel& prepared, unsigned depth, unsigned n_gen) {
  const auto& geometry = prepared.geometry;
  if (!geometry || !geometry->kv_known) return;
  prepared.model.kv.push_back({depth, geometry->kv_bytes_sum(depth, n_gen) / n_gen});
}

void take_from_run(BenchModel& model, const LlamaBenchResult& result, BytesConvention convention) {
  if (result.gpu_layers != 0 && !result.gpu_info.empty()) model.offloaded = true;
  if (convention != BytesConvention::kFile || model.moe || !result.model_size) return;
  model.bytes = static_cast<double>(*result.model_size);
  model.bytes_source = "llama-bench model_size";
}

}  // namespace rooflined::daemon
