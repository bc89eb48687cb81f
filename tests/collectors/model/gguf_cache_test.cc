// KV caches from metadata alone.

#include "collectors/model/gguf_cache.h"
#include "tests/support/catch.h"

#include <string>

using namespace rooflined::model;

namespace {

GgufMetadata metadata(const std::string& arch, std::uint64_t blocks) {
  GgufMetadata values;
  values.add(arch + ".block_count", GgufMetadata::Value::of(blocks));
  values.add(arch + ".embedding_length", GgufMetadata::Value::of(std::uint64_t{1024}));
  values.add(arch + ".attention.head_count", GgufMetadata::Value::of(std::uint64_t{8}));
  values.add(arch + ".attention.head_count_kv", GgufMetadata::Value::of(std::uint64_t{4}));
  return values;
}

}  // namespace

TEST_CASE("head length from the width, or from its own keys") {
  GgufMetadata values = metadata("llama", 4);
  GgufCache cache = gguf_cache(values, "llama", {});
  REQUIRE(cache.layers.size() == 1);
  CHECK(cache.layers[0].layers == 4);
  CHECK(cache.layers[0].key_elements == 4 * 128);
  values.add("llama.attention.key_length", GgufMetadata::Value::of(std::uint64_t{192}));
  values.add("llama.attention.value_length", GgufMetadata::Value::of(std::uint64_t{64}));
  cache = gguf_cache(values, "llama", {1, 3});
  CHECK(cache.layers[0].layers == 2);
  CHECK(cache.layers[0].key_elements == 4 * 192);
  CHECK(cache.layers[0].value_elements == 4 * 64);
}

TEST_CASE("windows by the architecture's pattern, by a period, by layer") {
  GgufMetadata values = metadata("gemma3", 26);
  values.add("gemma3.attention.sliding_window", GgufMetadata::Value::of(std::uint64_t{512}));
  GgufCache cache = gguf_cache(values, "gemma3", {});
  REQUIRE(cache.layers.size() == 2);
  CHECK(cache.layers[0].window == 512);
  CHECK(cache.layers[0].layers == 22);
  CHECK(cache.layers[1].window == 0);
  CHECK(cache.layers[1].layers == 4);

  values = metadata("new", 4);
  values.add("new.attention.sliding_window", GgufMetadata::Value::of(std::uint64_t{512}));
  CHECK_FALSE(gguf_cache(values, "new", {}).known);
  GgufMetadata by_layer = values;
  values.add("new.attention.sliding_window_pattern", GgufMetadata::Value::of(std::uint64_t{2}));
  CHECK(gguf_cache(values, "new", {}).layers.at(1).layers == 2);
  by_layer.add("new.attention.sliding_window_pattern", GgufMetadata::Value::of(std::vector<std::int64_t>{1, 1, 1, 0}));
  CHECK(gguf_cache(by_layer, "new", {}).layers.at(0).layers == 3);
}

TEST_CASE("a window that the engine does not apply is none") {
  GgufMetadata values = metadata("llama", 2);
  values.add("llama.attention.sliding_window", GgufMetadata::Value::of(std::uint64_t{4096}));
  CHECK(gguf_cache(values, "llama", {}).layers.at(0).window == 0);
}

TEST_CASE(
    "latent attention caches one latent and one rotated part, sparse attention reads its top-k and all index keys") {
  GgufMetadata values = metadata("deepseek2", 3);
  values.add("deepseek2.attention.kv_lora_rank", GgufMetadata::Value::of(std::uint64_t{512}));
  CHECK_FALSE(gguf_cache(values, "deepseek2", {}).known);
  values.add("deepseek2.rope.dimension_count", GgufMetadata::Value::of(std::uint64_t{64}));
  GgufCache cache = gguf_cache(values, "deepseek2", {2});
  REQUIRE(cache.layers.size() == 1);
  CHECK(cache.layers[0].layers == 2);
  CHECK(cache.layers[0].key_elements == 576);
  CHECK(cache.layers[0].value_elements == 0);
  CHECK(cache.warnings.size() == 1);
  values.add("deepseek2.attention.key_length_mla", GgufMetadata::Value::of(std::uint64_t{192}));
  CHECK(gguf_cache(values, "deepseek2", {}).warnings.empty());
  values.add("deepseek2.attention.indexer.top_k", GgufMetadata::Value::of(std::uint64_t{2048}));
  values.add("deepseek2.attention.indexer.key_length", GgufMetadata::Value::of(std::uint64_t{128}));
  cache = gguf_cache(values, "deepseek2", {});
  CHECK(cache.layers.at(0).window == 2048);
  CHECK(cache.layers.at(0).index_elements == 128);
}

TEST_CASE("layers that share a cache, heads of two sizes, chunks") {
  GgufMetadata values = metadata("gemma3n", 10);
  values.add("gemma3n.attention.shared_kv_layers", GgufMetadata::Value::of(std::uint64_t{4}));
  GgufCache cache = gguf_cache(values, "gemma3n", {});
  REQUIRE(cache.layers.size() == 2);
  CHECK(cache.layers[0].layers == 5);
  CHECK(cache.layers[0].window == 512);
  CHECK(cache.layers[1].layers == 1);

  values = metadata("new", 2);
  values.add("new.attention.sliding_window", GgufMetadata::Value::of(std::uint64_t{128}));
  values.add("new.attention.sliding_window_pattern", GgufMetadata::Value::of(std::vector<std::int64_t>{1, 0}));
  values.add("new.attention.key_length", GgufMetadata::Value::of(std::uint64_t{512}));
  values.add("new.attention.value_length", GgufMetadata::Value::of(std::uint64_t{512}));
  values.add("new.attention.key_length_swa", GgufMetadata::Value::of(std::uint64_t{256}));
  values.add("new.attention.value_length_swa", GgufMetadata::Value::of(std::uint64_t{256}));
  cache = gguf_cache(values, "new", {});
  REQUIRE(cache.layers.size() == 2);
  CHECK(cache.layers[0].key_elements == 4 * 256);
  CHECK(cache.layers[1].key_elements == 4 * 512);

  cache = gguf_cache(metadata("llama4", 8), "llama4", {});
  REQUIRE(cache.layers.size() == 2);
  CHECK(cache.layers[0].chunk == 8192);
  CHECK(cache.layers[0].layers == 6);
  CHECK(cache.layers[1].chunk == 0);
}

TEST_CASE("recurrent layers have a state of constant size, in 32 bit") {
  const auto number = [](std::uint64_t value) { return GgufMetadata::Value::of(value); };
  SECTION("in every block") {
    GgufMetadata values = metadata("mamba2", 3);
    values.add("mamba2.ssm.conv_kernel", number(4));
    values.add("mamba2.ssm.inner_size", number(2048));
    values.add("mamba2.ssm.state_size", number(128));
    values.add("mamba2.ssm.group_count", number(1));
    const GgufCache cache = gguf_cache(values, "mamba2", {});
    CHECK(cache.known);
    CHECK(cache.layers.empty());
    CHECK(cache.state_bytes == 3 * 4.0 * (3 * (2048 + 256) + 2048 * 128));
  }
  SECTION("three of four") {
    GgufMetadata values = metadata("qwen3next", 8);
    values.add("qwen3next.ssm.conv_kernel", number(4));
    values.add("qwen3next.ssm.inner_size", number(4096));
    values.add("qwen3next.ssm.state_size", number(128));
    values.add("qwen3next.ssm.group_count", number(16));
    const GgufCache cache = gguf_cache(values, "qwen3next", {});
    CHECK(cache.layers.at(0).layers == 2);
    CHECK(cache.state_bytes == 6 * 4.0 * (3 * (4096 + 2 * 16 * 128) + 4096 * 128));
  }
  SECTION("where a block has no heads") {
    GgufMetadata values;
    values.add("lfm2.block_count", number(3));
    values.add("lfm2.embedding_length", number(1024));
    values.add("lfm2.attention.head_count", number(8));
    values.add("lfm2.attention.head_count_kv", GgufMetadata::Value::of(std::vector<std::int64_t>{0, 4, 0}));
    values.add("lfm2.shortconv.l_cache", number(3));
    const GgufCache cache = gguf_cache(values, "lfm2", {});
    CHECK(cache.layers.at(0).layers == 1);
    CHECK(cache.state_bytes == 2 * 4.0 * 1024 * 2);
  }
  SECTION("blocks that are a feed-forward part alone have neither") {
    GgufMetadata values;
    values.add("nemotron_h.block_count", number(3));
    values.add("nemotron_h.embedding_length", number(1024));
    values.add("nemotron_h.attention.head_count", number(8));
    values.add("nemotron_h.attention.head_count_kv", GgufMetadata::Value::of(std::vector<std::int64_t>{0, 4, 0}));
    values.add("nemotron_h.feed_forward_length", GgufMetadata::Value::of(std::vector<std::int64_t>{0, 0, 4096}));
    values.add("nemotron_h.ssm.conv_kernel", number(4));
    values.add("nemotron_h.ssm.inner_size", number(2048));
    values.add("nemotron_h.ssm.state_size", number(128));
    const GgufCache cache = gguf_cache(values, "nemotron_h", {});
    CHECK(cache.layers.at(0).layers == 1);
    CHECK(cache.state_bytes == 4.0 * (3 * 2048 + 2048 * 128));
  }
}

TEST_CASE("models that do not decode with one stack are named") {
  for (const char* architecture : {"t5", "bert", "nomic-bert", "clip"}) {
    const GgufCache cache = gguf_cache(metadata(architecture, 2), architecture, {});
    CHECK_FALSE(cache.known);
    CHECK(cache.warnings.at(0).find(architecture) != std::string::npos);
  }
}

TEST_CASE("metadata that make no sense are unknown, never a guess") {
  GgufMetadata none;
  CHECK_FALSE(gguf_cache(none, "llama", {}).known);
  CHECK_FALSE(gguf_cache(metadata("llama", 1'000'000'000'000), "llama", {}).known);
  GgufMetadata values = metadata("llama", 2);
  values.add("llama.attention.key_length", GgufMetadata::Value::of(std::string("128")));
  CHECK_FALSE(gguf_cache(values, "llama", {}).known);
  GgufMetadata negative;
  negative.add("llama.block_count", GgufMetadata::Value::of(std::int64_t{-4}));
  CHECK_FALSE(gguf_cache(negative, "llama", {}).known);
  GgufMetadata huge = metadata("llama", 2);
  huge.add("llama.attention.value_length", GgufMetadata::Value::of(UINT64_MAX));
  CHECK_FALSE(gguf_cache(huge, "llama", {}).known);
  GgufMetadata short_array;
  short_array.add("llama.block_count", GgufMetadata::Value::of(std::uint64_t{3}));
  short_array.add("llama.attention.head_count_kv", GgufMetadata::Value::of(std::vector<std::int64_t>{1, 2}));
  CHECK_FALSE(gguf_cache(short_array, "llama", {}).known);
}
