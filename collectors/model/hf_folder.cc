#include "collectors/model/hf_folder.h"

#include "collectors/model/byte_source.h"
#include "collectors/model/json_stream.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace rooflined::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::size_t kFilesMax = 4096;
constexpr std::uint64_t kIndexBytesMax = 64 * 1024 * 1024;
constexpr std::size_t kNamesMax = 65'536;

// The file names that an index maps tensors to.
class IndexEvents : public nlohmann::json_sax<json> {
 public:
  explicit IndexEvents(JsonStream& stream) : stream_(stream) {}

  bool null() override { return heard(); }
  bool boolean(bool) override { return heard(); }
  bool number_integer(number_integer_t) override { return heard(); }
  bool number_unsigned(number_unsigned_t) override { return heard(); }
  bool number_float(number_float_t, const string_t&) override { return heard(); }
  bool binary(binary_t&) override { return heard(); }
  bool string(string_t& value) override {
    heard();
    if (depth_ != 2 || !in_map_) return true;
    // A name, and never a way out of the folder.
    if (value.size() > 255 || value.find('/') != std::string::npos || value.find('\0') != std::string::npos)
      return false;
    files_.insert(value);
    return files_.size() <= kFilesMax;
  }
  bool start_object(std::size_t) override {
    heard();
    return ++depth_ <= 16;
  }
  bool key(string_t& value) override {
    heard();
    if (depth_ == 1) in_map_ = value == "weight_map";
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override { return start_object(0); }
  bool end_array() override { return end_object(); }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }

  const std::set<std::string>& files() const noexcept { return files_; }

 private:
  bool heard() {
    stream_.heard();
    return true;
  }

  JsonStream& stream_;
  int depth_ = 0;
  bool in_map_ = false;
  std::set<std::string> files_;
};

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && names.size() < kNamesMax;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Error missing(const std::string& folder, const std::string& name) {
  return Error{ErrorCode::kNotFound, folder, fmt::format("{} is missing: a download that is not finished?", name)};
}

Result<std::vector<std::string>> from_index(const std::string& folder, const std::string& index,
                                            const std::vector<std::string>& names) {
  const std::string path = folder + "/" + index;
  Result<std::unique_ptr<ByteSource>> source = open_file(path);
  if (!source) return source.error();
  if ((*source)->size() > kIndexBytesMax) return Error{ErrorCode::kLimit, path, "too long for an index"};
  JsonStream stream(**source, 0, (*source)->size());
  IndexEvents events(stream);
  if (!json::sax_parse(stream.begin(), stream.end(), &events)) {
    return Error{ErrorCode::kInvalid, path, "not an index of safetensors files"};
  }
  std::vector<std::string> files;
  for (const std::string& name : events.files()) {
    if (!has(names, name)) return missing(folder, to_label(name));
    files.push_back(folder + "/" + name);
  }
  return files;
}

// "model-00001-of-00003.safetensors" → the stem and 3.
std::optional<std::pair<std::string, unsigned>> shard_of(std::string_view name) {
  name.remove_suffix(kSuffix.size());
  const std::size_t of = name.rfind("-of-");
  if (of == std::string_view::npos || of < 6 || name[of - 6] != '-') return std::nullopt;
  unsigned count = 0;
  const std::string_view digits = name.substr(of + 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc{} || end != digits.data() + digits.size() || count == 0 || count > kFilesMax)
    return std::nullopt;
  return std::pair{std::string(name.substr(0, of - 6)), count};
}

Result<std::vector<std::string>> all_shards(const std::string& folder, const std::string& stem, unsigned count,
                                            const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (unsigned shard = 1; shard <= count; ++shard) {
    const std::string name = fmt::format("{}-{:05}-of-{:05}{}", stem, shard, count, kSuffix);
    if (!has(names, name)) return missing(folder, to_label(name));
    files.push_back(folder + "/" + name);
  }
  return files;
}

bool is_another_kind(std::string_view name) {
  return name.starts_with("consolidated") || name.starts_with("adapter") ||
         name.find(".fp16.") != std::string_view::npos || name.find(".fp32.") != std::string_view::npos ||
         name.starts_with("optimizer");
}

}  // namespace

Result<std::vector<std::string>> safetensors_files(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder);
  if (has(names, "model.safetensors.index.json")) return from_index(folder, "model.safetensors.index.json", names);
  if (has(names, "model.safetensors")) return std::vector<std::string>{folder + "/model.safetensors"};
  std::vector<std::string> candidates;
  for (const std::string& name : names) {
    if (name.size() > kSuffix.size() && name.ends_with(kSuffix) && !is_another_kind(name)) candidates.push_back(name);
  }
  if (candidates.empty() && has(names, "consolidated.safetensors.index.json")) {
    return from_index(folder, "consolidated.safetensors.index.json", names);
  }
  if (candidates.empty() && has(names, "consolidated.safetensors")) candidates.emplace_back("consolidated.safetensors");
  if (candidates.empty()) return std::vector<std::string>{};
  if (const auto shard = shard_of(candidates.front())) return all_shards(folder, shard->first, shard->second, names);
  if (candidates.size() > 1) {
    return Error{
        ErrorCode::kUnsupported, folder,
        fmt::format("{} safetensors files, and neither an index nor numbers in their names say which are the model",
                    candidates.size())};
  }
  return std::vector<std::string>{folder + "/" + candidates.front()};
}

std::string snapshot_folder(const std::string& folder) {
  const std::string snapshots = folder + "/snapshots";
  std::error_code error;
  if (!fs::is_directory(snapshots, error)) return folder;
  if (Result<std::unique_ptr<ByteSource>> source = open_file(folder + "/refs/main")) {
    SourceReader reader(**source);
    std::string revision = reader.text(std::min<std::uint64_t>(reader.left(), 64));
    while (!revision.empty() && (revision.back() == '\n' || revision.back() == '\r')) revision.pop_back();
    if (!revision.empty() && revision.find('/') == std::string::npos && revision.front() != '.' &&
        fs::is_directory(snapshots + "/" + revision, error)) {
      return snapshots + "/" + revision;
    }
  }
  std::string newest;
  fs::file_time_type newest_at{};
  for (const std::string& name : names_in(snapshots)) {
    const fs::file_time_type at = fs::last_write_time(snapshots + "/" + name, error);
    if (error || (!newest.empty() && at < newest_at)) continue;
    newest = name;
    newest_at = at;
  }
  return newest.empty() ? folder : snapshots + "/" + newest;
}

}  // namespace rooflined::model
