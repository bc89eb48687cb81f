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

// Architectures with recurrent layers in every block, beside attention or in its place.
constexpr std::array<std::string_view, 9> kAllRecurrent = {"mamba",  "mamba2",    "rwkv6", "rwkv6qwen2", "rwkv7",
                                                           "arwkv7", "falcon-h1", "rwkv",  "rwkv5"};
// Those with attention in each `full_attention_interval`-th block, 4 where the metadata do not say.
constexpr std::array<std::string_view, 4> kEveryFourthAttends = {"qwen3next", "qwen35", "qwen35moe", "qwen3nextmoe"};

// Those with blocks that are a feed-forward part alone.
constexpr std::array<std::string_view, 2> kMlpBlocks = {"nemotron_h", "nemotron_h_moe"};

// Models that do not decode with one stack, as llama.cpp names them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kNoDecoders = {{
    {"t5", "an encoder-decoder"},
    {"t5encoder", "an encoder"},
    {"bert", "an embedding model"},
    {"nomic-bert", "an embedding model"},
    {"nomic-bert-moe", "an embedding model"},
    {"jina-bert-v2", "an embedding model"},
    {"jina-bert-v3", "an embedding model"},
    {"neo-bert", "an embedding model"},
    {"modern-bert", "an embedding model"},
    {"eurobert", "an embedding model"},
    {"gemma-embedding", "an embedding model"},
    {"llama-embed", "an embedding model"},
    {"clip", "a vision encoder"},
    {"wavtokenizer-dec", "an audio decoder"},
}};

// Sliding windows as llama.cpp runs them (src/llama-model.cpp, set_swa_pattern): of `period` layers the last one sees
// the whole context; 1: every layer does, whatever the metadata say.
struct WindowPattern {
  std::string_view architecture;
  std::uint64_t period;
  std::uint64_t window_default;  // where the metadata name none
};
constexpr std::array<WindowPattern, 19> kWindowPatterns = {{
    {"gemma2", 2, 4096},  {"gemma3", 6, 0},  {"gemma3n", 5, 512}, {"llama4", 4, 8192},  {"smallthinker", 4, 4096},
    {"gpt-oss", 2, 0},    {"cohere2", 4, 0}, {"exaone4", 4, 0},   {"olmo2", 4, 0},      {"afmoe", 4, 0},
    {"exaone-moe", 4, 0}, {"llama", 1, 0},   {"phi3", 1, 0},      {"phimoe", 1, 0},     {"qwen2", 1, 0},
    {"qwen2moe", 1, 0},   {"qwen3", 1, 0},   {"qwen3moe", 1, 0},  {"starcoder2", 1, 0},
}};

class CacheReader {
 public:
  CacheReader(const GgufMetadata& metadata, const std::string& architecture)
      : metadata_(metadata), architecture_(architecture) {}

  GgufCache read(const std::set<std::uint64_t>& blocks_left_out) {
    if (const std::string_view other = not_a_decoder_architecture(architecture_); !other.empty()) {
      unknown(fmt::format("KV cache not known: {} is {}", architecture_, other));
      return std::move(cache_);
    }
    const std::optional<std::uint64_t> blocks = number("block_count");
    if (!blocks || *blocks == 0 || *blocks > kBlocksMax) {
      unknown(fmt::format("KV cache not known: no usable {}", key("block_count")));
      return std::move(cache_);
    }
    blocks_ = *blocks;
    if (!read_windows()) return std::move(cache_);
    for (std::uint64_t block = 0; block < *blocks; ++block) {
      if (blocks_left_out.count(block) > 0) continue;
      const bool recurrent = is_recurrent(block);
      if (recurrent && state_bytes() <= 0) {
        unknown(fmt::format("KV cache not known: block {} of {} is recurrent, and the size of its state is not told",
                            block, architecture_));
        return std::move(cache_);
      }
      if (recurrent) cache_.state_bytes += state_bytes();
      if (attends(block, recurrent) && !add_block(block)) return std::move(cache_);
    }
    return std::move(cache_);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  std::optional<std::uint64_t> number(std::string_view name) const { return metadata_.number(key(name)); }
  double size(std::string_view name) const {
    return static_cast<double>(std::min(number(name).value_or(0), kHeadsMax));
  }
  std::optional<std::uint64_t> layer(std::string_view name, std::uint64_t block) const {
    return metadata_.layer_number(key(name), block);
  }
  bool has_any(std::string_view prefix) const {
    const auto found = metadata_.values().lower_bound(key(prefix));
    return found != metadata_.values().end() && found->first.starts_with(key(prefix));
  }

  void unknown(std::string warning) {
    cache_.known = false;
    cache_.layers.clear();
    cache_.state_bytes = 0;
    cache_.warnings.push_back(std::move(warning));
  }

  // Which blocks hold a recurrent state, as llama.cpp decides it for each architecture.
  bool is_recurrent(std::uint64_t block) const {
    if (among(kAllRecurrent, architecture_)) return true;
    if (!has_any("ssm.") && !has_any("shortconv.") && !has_any("kda.") && !has_any("wkv.")) return false;
    if (among(kEveryFourthAttends, architecture_) || metadata_.has(key("full_attention_interval"))) {
      return (block + 1) % std::max<std::uint64_t>(number("full_attention_interval").value_or(4), 1) != 0;
    }
    // A block without heads is recurrent, unless it is a feed-forward block alone.
    if (layer("attention.head_count_kv", block).value_or(0) != 0) return false;
    return !among(kMlpBlocks, architecture_) || layer("feed_forward_length", block).value_or(0) == 0;
  }
  bool attends(std::uint64_t block, bool recurrent) const {
    const std::uint64_t sharing = number("attention.shared_kv_layers").value_or(0);
    if (block >= blocks_ - std::min(sharing, blocks_)) return false;
    return !recurrent || architecture_ == "falcon-h1";
  }

  // State of one recurrent block, all of it in 32 bit: convolution inputs, and what the recurrence carries along.
  double state_bytes() const {
    constexpr double kWide = 4;
    const double width = size("embedding_length");
    const double taps = std::max(size("ssm.conv_kernel") - 1, 0.0);
    if (const double head = size("wkv.head_size"); head > 0) return (2 * width + width * head) * kWide;
    if (const double cache = size("shortconv.l_cache"); cache > 0) return width * (cache - 1) * kWide;
    if (const double head = size("kda.head_dim"); head > 0) {
      const double heads = static_cast<double>(std::min(layer("attention.head_count", 0).value_or(0), kHeadsMax));
      return (3 * taps * heads * head + heads * head * head) * kWide;
    }
    const double inner = size("ssm.inner_size");
    const double state = size("ssm.state_size");
    return (taps * (inner + 2 * size("ssm.group_count") * state) + inner * state) * kWide;
  }

  // False where layers have windows and nothing says which.
  bool read_windows() {
    const WindowPattern* pattern = nullptr;
    for (const WindowPattern& each : kWindowPatterns) {
      if (architecture_ == each.architecture) pattern = &each;
    }
    window_ = number("attention.sliding_window").value_or(pattern != nullptr ? pattern->window_default : 0);
    chunked_ = architecture_ == "llama4" || metadata_.has(key("attention.chunk_size"));
    if (chunked_) window_ = number("attention.chunk_size").value_or(window_);
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
    if (metadata_.has(key("attention.kv_lora_rank"))) return add_latent_block(block);
    const std::optional<std::uint64_t> heads = layer("attention.head_count", block);
    const std::optional<std::uint64_t> kv_heads =
        metadata_.has(key("attention.head_count_kv")) ? layer("attention.head_count_kv", block) : heads;
    if (!kv_heads || *kv_heads > kHeadsMax) {
      unknown(fmt::format("KV cache not known: no usable {} of block {}", key("attention.head_count_kv"), block));
      return false;
    }
    if (*kv_heads == 0) return true;
    const std::uint64_t window = window_of(block);
    const bool own_lengths = window > 0 && metadata_.has(key("attention.key_length_swa"));
    const std::optional<std::uint64_t> key_length =
        head_length(own_lengths ? "attention.key_length_swa" : "attention.key_length");
    const std::optional<std::uint64_t> value_length =
        head_length(own_lengths ? "attention.value_length_swa" : "attention.value_length");
    if (!key_length || !value_length) {
      unknown(
          fmt::format("KV cache not known: no usable {} or {}", key("attention.key_length"), key("embedding_length")));
      return false;
    }
    const double each = static_cast<double>(*kv_heads);
    add_kv_layers(cache_.layers, {1, each * static_cast<double>(*key_length), each * static_cast<double>(*value_length),
                                  chunked_ ? 0 : window, chunked_ ? window : 0, 0});
    return true;
  }

  // One latent and one rotated part for all heads, once. A file made before engines kept it so makes them keep more.
  bool add_latent_block(std::uint64_t block) {
    const double latent = size("attention.kv_lora_rank");
    const double rope = size("rope.dimension_count");
    if (latent == 0 || rope == 0) {
      unknown(fmt::format("KV cache not known: no usable {} or {}", key("attention.kv_lora_rank"),
                          key("rope.dimension_count")));
      return false;
    }
    const bool old =
        layer("attention.head_count_kv", block).value_or(1) > 1 && !metadata_.has(key("attention.key_length_mla"));
    if (old && cache_.warnings.empty()) {
      cache_.warnings.push_back("made before latent attention was kept as one: an engine may cache every head of it");
    }
    const std::uint64_t top = number("attention.indexer.top_k").value_or(0);
    add_kv_layers(cache_.layers, {1, latent + rope, 0, top > 0 ? top : window_of(block), 0,
                                  top > 0 ? size("attention.indexer.key_length") : 0});
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

  template <std::size_t N>
  static bool among(const std::array<std::string_view, N>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  }

  const GgufMetadata& metadata_;
  const std::string& architecture_;
  GgufCache cache_;
  std::uint64_t blocks_ = 0;
  bool chunked_ = false;
  std::uint64_t window_ = 0;
  std::uint64_t period_ = 1;
  bool window_per_layer_ = false;
};

}  // namespace

std::string_view not_a_decoder_architecture(std::string_view architecture) {
  for (const auto& [name, what] : kNoDecoders) {
    if (architecture == name) return what;
  }
  return {};
}

GgufCache gguf_cache(const GgufMetadata& metadata, const std::string& architecture,
                     const std::set<std::uint64_t>& blocks_left_out) {
  return CacheReader(metadata, architecture).read(blocks_left_out);
}

}  // namespace rooflined::model
