#include "metrics/geometry.h"

#include "tests/support/catch.h"

using namespace rooflined;

namespace {

Geometry qwen3_30b_a3b_bf16() {
  Geometry geometry;
  geometry.expert_groups = {{48, 128, 8, 3.0 * 2048 * 768 * 2}};
  geometry.kv_groups = {{48, 2.0 * 4 * 128 * 2, 0}};
  return geometry;
}

}  // namespace

TEST_CASE("expected distinct experts: 8 at B = 1, 125.942 at B = 64 (128 experts, top 8)") {
  const Geometry geometry = qwen3_30b_a3b_bf16();
  const double one_expert_everywhere = 48 * 3.0 * 2048 * 768 * 2;
  CHECK(geometry.weight_bytes(1).experts / one_expert_everywhere == Approx(8).epsilon(1e-12));
  CHECK(geometry.weight_bytes(64).experts / one_expert_everywhere == Approx(125.942).epsilon(1e-5));
}

TEST_CASE("Qwen3-30B-A3B caches 96 KiB a token") {
  CHECK(qwen3_30b_a3b_bf16().kv_bytes_per_token() == 96 * 1024);
}

TEST_CASE("the sum over contexts equals its terms, windows or not") {
  Geometry geometry;
  geometry.kv_groups = {{2, 10, 0}, {3, 7, 100}};
  geometry.state_bytes_per_sequence = 5;
  for (const double first : {0.0, 50.0, 99.0, 99.5, 100.0, 250.0}) {
    for (const int count : {0, 1, 40, 200}) {
      double expected = 0;
      for (int i = 0; i < count; ++i) expected += geometry.kv_bytes(first + i);
      INFO(first << " " << count);
      CHECK(geometry.kv_bytes_sum(first, count) == Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("chunked layers read what came since the last border, sparse ones their top-k and every index key") {
  Geometry geometry;
  geometry.kv_groups = {KvGroup{2, 10, 0, 8, 0}, KvGroup{3, 7, 100, 0, 0.5}};
  CHECK(geometry.kv_bytes(8) == 2 * 10 * 8 + 3 * (7 + 0.5) * 8);
  CHECK(geometry.kv_bytes(9) == 2 * 10 * 1 + 3 * (7 + 0.5) * 9);
  CHECK(geometry.kv_bytes(200) == 2 * 10 * 8 + 3 * (7 * 100.0 + 0.5 * 200));
  for (const double first : {0.0, 1.0, 7.0, 8.0, 8.5, 9.0, 99.0, 1000.25}) {
    for (const int count : {0, 1, 2, 8, 17, 200}) {
      double expected = 0;
      for (int i = 0; i < count; ++i) expected += geometry.kv_bytes(first + i);
      INFO(first << " " << count);
      CHECK(geometry.kv_bytes_sum(first, count) == Approx(expected).epsilon(1e-12));
    }
  }
}
