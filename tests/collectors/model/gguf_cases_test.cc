// Sound and broken GGUF files from the field, one file per defect (data/README.md), each with its right answer.

#include "collectors/model/gguf_model.h"
#include "tests/support/catch.h"
#include "tests/support/containing.h"

#include <string>

using namespace rooflined;
using namespace rooflined::model;
using rooflined::test::containing;

namespace {

std::string data(const std::string& name) {
  return std::string(ROOFLINED_TEST_DATA) + "/" + name;
}

ModelFile read(const std::string& name) {
  Result<ModelFile> model = read_gguf(data(name));
  INFO(name << ": " << (model ? std::string() : model.error().message()));
  REQUIRE(model.ok());
  return std::move(*model);
}

std::string refusal(const std::string& name) {
  const Result<ModelFile> model = read_gguf(data(name));
  return model ? "read" : model.error().detail;
}

}  // namespace

TEST_CASE("sound files give the bytes of a pass") {
  struct Row {
    const char* file;
    Bytes dense;
    bool cut;
  };
  for (const Row& row : {
           Row{"v3_untied.gguf", 161024, false},
           Row{"v2_q4k.gguf", 756224, false},
           Row{"v3_bigendian.gguf", 161024, false},
           Row{"type_mxfp4.gguf", 364288, true},
           Row{"type_q1_0.gguf", 98688, true},
           Row{"type_tq1_0.gguf", 146496, true},
           Row{"type_iq1_m.gguf", 151808, true},
           Row{"alignment_8192.gguf", 161024, false},
           Row{"arrays_nested_zero.gguf", 161024, false},
           Row{"single-00001-of-00001.gguf", 161024, false},
           Row{"mtp_layer.gguf", 161024, false},
           Row{"moe_legacy_split_experts.gguf", 30720, false},
       }) {
    INFO(row.file);
    const ModelFile model = read(row.file);
    CHECK(model.weights_known);
    CHECK(model.dense_bytes == row.dense);
    CHECK(model.cut == row.cut);
    CHECK(model.files == 1);
    const auto geometry = make_geometry(model);
    REQUIRE(geometry.has_value());
    CHECK(geometry->dense_bytes == static_cast<double>(row.dense));
  }
}

TEST_CASE("broken files are refused by name") {
  struct Row {
    const char* file;
    const char* reason;
  };
  for (const Row& row : {
           Row{"magic_ggjt.gguf", "magic"},
           Row{"ntensors_huge.gguf", "18446744073709551615 tensors"},
           Row{"array_len_overflow.gguf", "array of 2305843009213693953 elements"},
           Row{"ndims_million.gguf", "n_dims"},
           Row{"unknown_type.gguf", "type 99"},
           Row{"alignment_wrong_type.gguf", "alignment type"},
           Row{"missing-00001-of-00002.gguf", "missing shard 2"},
           Row{"truncated_header.gguf", "truncated"},
           Row{"duplicate_tensor_and_key.gguf", "duplicate"},
           Row{"empty.gguf", "truncated"},
       }) {
    INFO(row.file);
    CHECK(refusal(row.file) == containing(row.reason));
  }
}

TEST_CASE("the head is the embedding only where no output is stored") {
  const ModelFile untied = read("v3_untied.gguf");
  CHECK_FALSE(untied.tied_embeddings);
  CHECK(untied.head_bytes == 12288);
  CHECK(untied.architecture == "llama");
  CHECK(make_geometry(untied)->kv_bytes_per_token() == 256);
}

TEST_CASE("head_count_kv absent means that every head has its own") {
  CHECK(make_geometry(read("v2_q4k.gguf"))->kv_bytes_per_token() == 2048);
}

TEST_CASE("per-layer head counts, a layer without a cache, and weights that are not there") {
  const ModelFile model = read("per_layer_kv_array.gguf");
  CHECK(model.kv_known);
  REQUIRE(model.kv_layers.size() == 2);
  double bytes = 0;
  for (const KvLayers& group : model.kv_layers) {
    bytes += static_cast<double>(group.layers) * (group.key_elements + group.value_elements) * 2;
  }
  CHECK(bytes == 192);
  CHECK_FALSE(model.weights_known);  // the file holds no layer
  CHECK_FALSE(make_geometry(model).has_value());
}

TEST_CASE("experts of the old layout, one tensor each") {
  const ModelFile model = read("moe_legacy_split_experts.gguf");
  REQUIRE(model.expert_layers.size() == 1);
  const ExpertLayers& group = model.expert_layers.front();
  CHECK(group.layers == 2);
  CHECK(group.experts == 4);
  CHECK(group.experts_per_token == 2);
  CHECK(group.bytes_per_expert * 4 * 2 == 98304);
  CHECK(model.streamed_bytes == 30720 + 98304);
  CHECK(model.parameters_total - model.parameters_active == 2 * 2 * 3 * 64 * 32);
}

TEST_CASE("more experts used than there are is taken as all of them") {
  const ModelFile model = read("moe_used_gt_count.gguf");
  REQUIRE(model.expert_layers.size() == 1);
  CHECK(model.expert_layers.front().experts_per_token == 4);
  REQUIRE(model.warnings.size() == 1);
  CHECK(model.warnings.front() == containing("expert_used_count"));
}

TEST_CASE("a next-token-prediction layer is neither read nor cached") {
  const ModelFile with = read("mtp_layer.gguf");
  const ModelFile without = read("v3_untied.gguf");
  CHECK(with.dense_bytes == without.dense_bytes);
  CHECK(with.parameters_total == without.parameters_total);
  CHECK(make_geometry(with)->kv_bytes_per_token() == make_geometry(without)->kv_bytes_per_token());
  REQUIRE(with.warnings.size() == 1);
}

TEST_CASE("names of things that are no model files are refused") {
  CHECK(read_gguf(data("no-such-file.gguf")).error().code == ErrorCode::kNotFound);
  CHECK(read_gguf(data("")).error().detail == containing("folder"));
  CHECK(read_gguf("/dev/null").error().detail == containing("not a regular file"));
  CHECK_FALSE(is_gguf(data("magic_ggjt.gguf")));
  CHECK(is_gguf(data("v3_untied.gguf")));
}
