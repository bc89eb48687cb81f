#include "collectors/server/model_stamp.h"

#include "collectors/server/stable_hash.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

namespace rooflined::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = std::size_t{1024} * 1024;
constexpr std::size_t kEntriesMax = 4096;

Result<struct stat> look_at(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return Error{ErrorCode::kIo, path, std::strerror(errno)};
  return status;
}

void add_head(const std::string& path, StableHash& hash) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kHeadBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  hash.add_bytes(head);
}

ModelStamp stamp(std::uint64_t bytes, const StableHash& hash, std::int64_t written) {
  return {fmt::format("{}-{:016x}", bytes, hash.value()), written};
}

Result<ModelStamp> folder_stamp(const std::string& path) {
  std::map<std::string, struct stat> weights;  // by name: a folder has no order of its own
  std::error_code error;
  fs::directory_iterator entry(path, error);
  for (std::size_t seen = 0; !error && entry != fs::directory_iterator() && seen < kEntriesMax; ++seen) {
    const std::string extension = entry->path().extension().string();
    if (extension == ".safetensors" || extension == ".gguf" || extension == ".bin") {
      if (const auto status = look_at(entry->path().string())) weights[entry->path().filename().string()] = *status;
    }
    entry.increment(error);
  }
  if (error) return Error{ErrorCode::kIo, path, error.message()};
  StableHash hash;
  std::uint64_t bytes = 0;
  std::int64_t written = 0;
  for (const auto& [name, status] : weights) {
    hash.add_text(name);
    hash.add_text(std::to_string(status.st_size));
    bytes += static_cast<std::uint64_t>(status.st_size);
    written = std::max<std::int64_t>(written, status.st_mtim.tv_sec);
  }
  add_head(path + "/config.json", hash);
  if (const auto config = look_at(path + "/config.json")) {
    written = std::max<std::int64_t>(written, config->st_mtim.tv_sec);
  }
  return stamp(bytes, hash, written);
}

}  // namespace

Result<ModelStamp> read_model_stamp(const std::string& path) {
  const auto status = look_at(path);
  if (!status) return status.error();
  if (S_ISDIR(status->st_mode)) return folder_stamp(path);
  if (!S_ISREG(status->st_mode)) return Error{ErrorCode::kUnsupported, path, "neither a file nor a folder"};
  StableHash hash;
  add_head(path, hash);
  return stamp(static_cast<std::uint64_t>(status->st_size), hash, status->st_mtim.tv_sec);
}

}  // namespace rooflined::server
