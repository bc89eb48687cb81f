#include "collectors/model/gguf_model.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

namespace rooflined::model {
namespace {

constexpr std::uint64_t kShardsMax = 1024;
constexpr std::string_view kMagic = "GGUF";

// NAME-00001-of-00002.gguf, the only names by which llama.cpp finds the other shards.
struct ShardName {
  std::string prefix;
  std::uint64_t count = 0;
  std::string suffix;

  std::string path(std::uint64_t number) const {
    return fmt::format("{}-{:05}-of-{:05}{}", prefix, number, count, suffix);
  }
};

std::optional<ShardName> shard_name(const std::string& path) {
  constexpr std::string_view kSuffix = ".gguf";
  constexpr std::size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr std::size_t kTail = 1 + kDigits + kOf.size() + kDigits + kSuffix.size();
  if (path.size() <= kTail || !path.ends_with(kSuffix)) return std::nullopt;
  const std::string_view tail = std::string_view(path).substr(path.size() - kTail);
  const auto digits = [&](std::size_t at) -> std::optional<std::uint64_t> {
    std::uint64_t number = 0;
    const std::string_view text = tail.substr(at, kDigits);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
  };
  const auto number = digits(1);
  const auto count = digits(1 + kDigits + kOf.size());
  if (tail.front() != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !number || !count || *number == 0 ||
      *number > *count) {
    return std::nullopt;
  }
  return ShardName{path.substr(0, path.size() - kTail), *count, std::string(kSuffix)};
}

Result<GgufShard> read_shard(const std::string& path, const GgufLimits& limits) {
  Result<std::unique_ptr<ByteSource>> source = open_file(path);
  if (!source) return source.error();
  Result<GgufHeader> header = read_gguf_header(**source, path, limits);
  if (!header) return header.error();
  return GgufShard{std::move(*header), (*source)->size()};
}

std::string file_name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// All shards in order; `limits.tensors_max` holds for them together.
Result<std::vector<GgufShard>> read_shards(const ShardName& name, GgufLimits limits) {
  std::vector<GgufShard> shards;
  for (std::uint64_t number = 1; number <= name.count; ++number) {
    const std::string path = name.path(number);
    Result<GgufShard> shard = read_shard(path, limits);
    if (!shard && shard.error().code == ErrorCode::kNotFound) {
      return Error{ErrorCode::kNotFound, path, fmt::format("missing shard {} of {}", number, name.count)};
    }
    if (!shard) return shard.error();
    const std::uint64_t declared = shard->header.metadata.number("split.no").value_or(number - 1);
    if (declared != number - 1) {
      return Error{ErrorCode::kInvalid, path,
                   fmt::format("is shard {} by its metadata, {} by its name", declared + 1, number)};
    }
    limits.tensors_max -= shard->header.tensors.size();
    shards.push_back(std::move(*shard));
  }
  return shards;
}

Status check_tensor_count(const std::vector<GgufShard>& shards, const std::string& path) {
  const auto declared = shards.front().header.metadata.number("split.tensors.count");
  std::uint64_t found = 0;
  for (const GgufShard& shard : shards) found += shard.header.tensors.size();
  if (declared.value_or(found) == found) return ok_status();
  return Error{ErrorCode::kInvalid, path, fmt::format("its shards hold {} tensors, should be {}", found, *declared)};
}

}  // namespace

bool is_gguf(const std::string& path) {
  Result<std::unique_ptr<ByteSource>> source = open_file(path);
  return source.ok() && SourceReader(**source).text(kMagic.size()) == kMagic;
}

Result<ModelFile> read_gguf(const std::string& path, const GgufLimits& limits) {
  Result<GgufShard> named = read_shard(path, limits);
  if (!named) return named.error();
  const std::optional<ShardName> name = shard_name(path);
  const std::uint64_t declared = named->header.metadata.number("split.count").value_or(name ? name->count : 1);
  if (declared > kShardsMax) {
    return Error{ErrorCode::kLimit, path, fmt::format("{} shards, at most {} are read", declared, kShardsMax)};
  }
  if (declared <= 1) return describe_gguf(std::span<const GgufShard>(&*named, 1), file_name_of(path));
  if (!name || name->count != declared) {
    return Error{
        ErrorCode::kInvalid, path,
        fmt::format("is one of {} shards, and its name does not end in -0000N-of-{:05}.gguf", declared, declared)};
  }
  const Result<std::vector<GgufShard>> shards = read_shards(*name, limits);
  if (!shards) return shards.error();
  if (Status status = check_tensor_count(*shards, path); !status) return status.error();
  return describe_gguf(*shards, file_name_of(path));
}

}  // namespace rooflined::model
