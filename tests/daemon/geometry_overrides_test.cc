// What a [[target]] says of a model goes before what the model says.

#include "daemon/geometry_overrides.h"
#include "daemon/model_geometry.h"
#include "tests/support/catch.h"
#include "tests/support/containing.h"

#include <memory>
#include <string>

using namespace rooflined;
using namespace rooflined::daemon;
using config::TargetConfig;
using rooflined::test::containing;

namespace {

// Two kinds of expert layers, windows in half of the others.
std::shared_ptr<const Geometry> found() {
  Geometry geometry;
  geometry.dense_bytes = 1000;
  geometry.head_bytes = 200;
  geometry.expert_groups = {{1, 8, 2, 60}, {3, 8, 2, 20}};
  geometry.kv_groups = {{2, 10, 512}, {2, 10}};
  geometry.source = "file";
  return std::make_shared<const Geometry>(geometry);
}

std::string warning;

Geometry overridden(const TargetConfig& settings, std::shared_ptr<const Geometry> from = found()) {
  const auto geometry = override_geometry(std::move(from), &settings, warning);
  REQUIRE(geometry != nullptr);
  return *geometry;
}

}  // namespace

TEST_CASE("nothing said: nothing changed") {
  const auto geometry = found();
  CHECK(override_geometry(geometry, nullptr, warning) == geometry);
  const TargetConfig none;
  CHECK(override_geometry(geometry, &none, warning) == geometry);
  CHECK(override_geometry(nullptr, &none, warning) == nullptr);
  CHECK(warning.empty());
}

TEST_CASE("each field alone, and where the geometry is then known from") {
  TargetConfig settings;
  SECTION("dense bytes") {
    settings.dense_bytes_per_pass = 5000;
    CHECK(overridden(settings).dense_bytes == 5000);
  }
  SECTION("the head is a part of the dense bytes") {
    settings.head_bytes = 300;
    CHECK(overridden(settings).head_bytes == 300);
    CHECK(overridden(settings).dense_bytes == 1100);
  }
  SECTION("bytes of a token: windows stay") {
    settings.kv_bytes_per_token = 80;
    CHECK(overridden(settings).kv_bytes_per_token() == 80);
    CHECK(overridden(settings).kv_bytes(1000) == 2 * 20 * 512 + 2 * 20 * 1000);
  }
  SECTION("the state of a sequence") {
    settings.state_bytes_per_sequence = 7;
    CHECK(overridden(settings).kv_bytes(0) == 7);
  }
  SECTION("bytes of an expert") {
    settings.expert_bytes = 10;
    CHECK(overridden(settings).weight_bytes(1).experts == 4 * 2 * 10);
  }
  SECTION("experts that a token uses, never more than there are") {
    settings.experts_per_token = 4;
    CHECK(overridden(settings).weight_bytes(1).experts == Approx(4 * 60 + 3 * 4 * 20));
    settings.experts_per_token = 100;
    CHECK(overridden(settings).weight_bytes(1).experts == Approx(8 * 60 + 3 * 8 * 20));
  }
  SECTION("layers: of the mean of the bytes") {
    settings.moe_layers = 6;
    CHECK(overridden(settings).weight_bytes(1).experts == Approx(6 * 2 * 30));
  }
  SECTION("a dense model") {
    settings.experts = 0;
    CHECK(overridden(settings).weight_bytes(64).experts == 0);
  }
  CHECK(overridden(settings).source == "settings");
  CHECK(warning.empty());
}

TEST_CASE("a model of which nothing is known") {
  TargetConfig settings;
  SECTION("needs the dense bytes") {
    settings.kv_bytes_per_token = 80;
    CHECK(override_geometry(nullptr, &settings, warning) == nullptr);
    CHECK(warning == containing("dense_bytes_per_pass"));
  }
  SECTION("the cache is not known unless it is said") {
    settings.dense_bytes_per_pass = 5000;
    CHECK_FALSE(overridden(settings, nullptr).kv_known);
    settings.kv_bytes_per_token = 80;
    CHECK(overridden(settings, nullptr).kv_known);
    CHECK(overridden(settings, nullptr).kv_bytes(10) == 800);
    CHECK(warning.empty());
  }
  SECTION("experts only all together") {
    settings.dense_bytes_per_pass = 5000;
    settings.experts = 8;
    settings.expert_bytes = 10;
    CHECK(overridden(settings, nullptr).expert_groups.empty());
    CHECK(warning == containing("moe_layers"));
    settings.moe_layers = 3;
    settings.experts_per_token = 2;
    CHECK(overridden(settings, nullptr).weight_bytes(1).total() == Approx(5000 + 3 * 2 * 10));
    CHECK(warning.empty());
  }
}

TEST_CASE("skewed routing scales the experts and is no override") {
  TargetConfig settings;
  settings.expert_skew = 0.5;
  CHECK(overridden(settings).weight_bytes(1).experts == Approx(0.5 * found()->weight_bytes(1).experts));
  CHECK(overridden(settings).source == "file");
}

TEST_CASE("what a server tells of its model") {
  server::ServerIdentity identity;
  CHECK(told_geometry(identity, {}) == nullptr);
  server::ServedModel served;
  served.id = "mystery.gguf";
  served.tensor_bytes = 900;
  served.parameters = 450;
  identity.models = {served};
  SECTION("two numbers: the weights, and no cache") {
    const auto geometry = told_geometry(identity, {});
    CHECK(geometry->dense_bytes == 900);
    CHECK_FALSE(geometry->kv_known);
    CHECK(geometry->source == "server");
  }
  SECTION("the shape of the published model of that name and size, with the bytes that were counted") {
    identity.models[0].id = "/models/Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL.gguf";
    identity.models[0].parameters = 30'532'122'624;
    identity.models[0].tensor_bytes = 17'690'000'000;
    const auto geometry = told_geometry(identity, {"q8_0", {}, {}});
    REQUIRE(geometry->expert_groups.size() == 1);
    CHECK(geometry->expert_groups[0].experts == 128);
    CHECK(geometry->kv_bytes_per_token() == Approx(98304.0 * 34 / 64));
    const double bytes_each = 17'690'000'000.0 / 30'532'122'624.0;
    CHECK(geometry->weight_bytes(1).total() == Approx(3'041'867'776 * bytes_each));
  }
  SECTION("another size under the name: another model") {
    identity.models[0].id = "Qwen3-30B-A3B-Q4_K_M.gguf";
    CHECK(told_geometry(identity, {})->expert_groups.empty());
  }
  SECTION("a whole tensor table") {
    identity.descriptions[identity.models[0].id] =
        R"({"model_info":{"general.architecture":"llama","llama.block_count":1,"llama.embedding_length":32,
            "llama.attention.head_count":2},"tensors":[{"name":"token_embd.weight","type":"F16","shape":[32,10]},
            {"name":"blk.0.attn_q.weight","type":"F16","shape":[32,32]}]})";
    const auto geometry = told_geometry(identity, {});
    CHECK(geometry->dense_bytes == 2 * (320 + 1024));
    CHECK(geometry->kv_bytes_per_token() == 2 * 32 * 2);
    CHECK_FALSE(without_cache(geometry)->kv_known);
    CHECK(without_cache(geometry)->kv_bytes(100) == 0);
  }
}
