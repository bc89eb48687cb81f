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

TEST_CASE("caches of another kind are unknown, with one line that says why") {
  for (const char* key : {"attention.kv_lora_rank", "ssm.state_size", "attention.shared_kv_layers", "wkv.head_size",
                          "attention.indexer.top_k", "attention.key_length_swa"}) {
    INFO(key);
    GgufMetadata values = metadata("x", 2);
    values.add(std::string("x.") + key, GgufMetadata::Value::of(std::uint64_t{16}));
    const GgufCache cache = gguf_cache(values, "x", {});
    CHECK_FALSE(cache.known);
    CHECK(cache.layers.empty());
    CHECK(cache.warnings.size() == 1);
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
