#include "collectors/model/gguf_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace rooflined::model {
namespace {

constexpr std::uint64_t kBlocksMax = 4096;
// Beyond any model, and small enough that products of two stay exact.
constexpr std::uint64_t kHeadsMax = 1U << 20U;

// Metadata (after "<architecture>.") that mean a cache other than K and V of every token in every layer.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kOtherCaches = {{
    {"attention.kv_lora_rank", "latent attention"},
    {"attention.indexer.", "sparse attention"},
    {"attention.shared_kv_layers", "layers that share a cache"},
    {"attention.chunk", "chunked attention"},
    {"attention.key_length_swa", "layers with heads of different sizes"},
    {"full_attention_interval", "linear attention"},
    {"ssm.", "state-space layers"},
    {"wkv", "recurrent layers"},
    {"shortconv.", "short convolutions"},
    {"kda.", "linear attention"},
    {"decoder_", "an encoder and a decoder"},
}};

// Architectures of the same kind that do not show in the metadata.
constexpr std::array<std::string_view, 2> kOtherArchitectures = {"llama4", "t5"};

// Sliding windows as llama.cpp runs them (src/llama-model.cpp, set_swa_pattern): of `period` layers the last one sees
// the whole context; 1: every layer does, whatever the metadata say.
struct WindowPattern {
  std::string_view architecture;
  std::uint64_t period;
  std::uint64_t window_default;  // where the metadata name none
};
constexpr std::array<WindowPattern, 14> kWindowPatterns = {{
    {"gemma2", 2, 4096},
    {"gemma3", 6, 0},
    {"gpt-oss", 2, 0},
    {"cohere2", 4, 0},
    {"exaone4", 4, 0},
    {"olmo2", 4, 0},
    {"llama", 1, 0},
    {"phi3", 1, 0},
    {"phimoe", 1, 0},
    {"qwen2", 1, 0},
    {"qwen2moe", 1, 0},
    {"qwen3", 1, 0},
    {"qwen3moe", 1, 0},
    {"starcoder2", 1, 0},
}};

class CacheReader {
 public:
  CacheReader(const GgufMetadata& metadata, const std::string& architecture)
      : metadata_(metadata), architecture_(architecture) {}

  GgufCache read(const std::set<std::uint64_t>& blocks_left_out) {
    if (const std::string_view other = other_cache(); !other.empty()) {
      unknown(fmt::format("KV cache not known: {} has {}", architecture_, other));
      return std::move(cache_);
    }
    const std::optional<std::uint64_t> blocks = number("block_count");
    if (!blocks || *blocks == 0 || *blocks > kBlocksMax) {
      unknown(fmt::format("KV cache not known: no usable {}", key("block_count")));
      return std::move(cache_);
    }
    if (!read_windows()) return std::move(cache_);
    for (std::uint64_t block = 0; block < *blocks; ++block) {
      if (blocks_left_out.count(block) > 0) continue;
      if (!add_block(block)) return std::move(cache_);
    }
    return std::move(cache_);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  std::optional<std::uint64_t> number(std::string_view name) const { return metadata_.number(key(name)); }
  std::optional<std::uint64_t> layer(std::string_view name, std::uint64_t block) const {
    return metadata_.layer_number(key(name), block);
  }

  void unknown(std::string warning) {
    cache_.known = false;
    cache_.layers.clear();
    cache_.warnings.push_back(std::move(warning));
  }

  std::string_view other_cache() const {
    for (const std::string_view other : kOtherArchitectures) {
      if (architecture_ == other) return "a cache of its own kind";
    }
    for (const auto& [name, meaning] : kOtherCaches) {
      const std::string prefix = key(name);
      const auto found = metadata_.values().lower_bound(prefix);
      if (found != metadata_.values().end() && found->first.starts_with(prefix)) return meaning;
    }
    return {};
  }

  // False where layers have windows and nothing says which.
  bool read_windows() {
    const WindowPattern* pattern = nullptr;
    for (const WindowPattern& each : kWindowPatterns) {
      if (architecture_ == each.architecture) pattern = &each;
    }
    window_ = number("attention.sliding_window").value_or(pattern != nullptr ? pattern->window_default : 0);
    if (window_ == 0) return true;
    window_per_layer_ = metadata_.is_array(key("attention.sliding_window_pattern"));
    if (window_per_layer_) return true;
    if (const auto period = number("attention.sliding_window_pattern")) {
      period_ = *period;
    } else if (pattern != nullptr) {
      period_ = pattern->period;
    } else {
      unknown(
          fmt::format("KV cache not known: {} has a sliding window of {} tokens, and which layers use it is not known",
                      architecture_, window_));
      return false;
    }
    return true;
  }

  // period 0: every layer has the window.
  std::uint64_t window_of(std::uint64_t block) const {
    if (window_ == 0) return 0;
    const bool windowed = window_per_layer_ ? layer("attention.sliding_window_pattern", block).value_or(0) != 0
                                            : period_ == 0 || block % period_ < period_ - 1;
    return windowed ? window_ : 0;
  }

  bool add_block(std::uint64_t block) {
    const std::optional<std::uint64_t> heads = layer("attention.head_count", block);
    const std::optional<std::uint64_t> kv_heads =
        metadata_.has(key("attention.head_count_kv")) ? layer("attention.head_count_kv", block) : heads;
    if (!kv_heads || *kv_heads > kHeadsMax) {
      unknown(fmt::format("KV cache not known: no usable {} of block {}", key("attention.head_count_kv"), block));
      return false;
    }
    if (*kv_heads == 0) return true;
    const std::optional<std::uint64_t> key_length = head_length("attention.key_length");
    const std::optional<std::uint64_t> value_length = head_length("attention.value_length");
    if (!key_length || !value_length) {
      unknown(
          fmt::format("KV cache not known: no usable {} or {}", key("attention.key_length"), key("embedding_length")));
      return false;
    }
    const double heads_each = static_cast<double>(*kv_heads);
    add_kv_layers(cache_.layers, {1, heads_each * static_cast<double>(*key_length),
                                  heads_each * static_cast<double>(*value_length), window_of(block), 0, 0});
    return true;
  }

  // Where the metadata do not name it: the width over the heads of the first layer.
  std::optional<std::uint64_t> head_length(std::string_view name) const {
    std::optional<std::uint64_t> length = number(name);
    if (!metadata_.has(key(name))) {
      const std::optional<std::uint64_t> width = number("embedding_length");
      const std::optional<std::uint64_t> heads = layer("attention.head_count", 0);
      if (width && heads && *heads > 0) length = *width / *heads;
    }
    if (!length || *length == 0 || *length > kHeadsMax) return std::nullopt;
    return length;
  }

  const GgufMetadata& metadata_;
  const std::string& architecture_;
  GgufCache cache_;
  std::uint64_t window_ = 0;
  std::uint64_t period_ = 1;
  bool window_per_layer_ = false;
};

}  // namespace

GgufCache gguf_cache(const GgufMetadata& metadata, const std::string& architecture,
                     const std::set<std::uint64_t>& blocks_left_out) {
  return CacheReader(metadata, architecture).read(blocks_left_out);
}

}  // namespace rooflined::model
