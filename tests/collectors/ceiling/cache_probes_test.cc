// Which models are small enough for the caches, and what is kept of their probes.

#include "collectors/ceiling/cache_probes.h"

#include "tests/support/catch.h"

#include <cmath>

using namespace rooflined;
using namespace rooflined::ceiling;

TEST_CASE("a model under four times the caches wants a probe of its size") {
  constexpr Bytes kCaches = 32 * kMiB;
  CHECK(cache_probe_size(64.0 * kMiB, kCaches) == 64 * kMiB);
  CHECK(cache_probe_size(66.0 * kMiB, kCaches) == 64 * kMiB);  // of like size
  CHECK_FALSE(cache_probe_size(128.0 * kMiB, kCaches));
  CHECK_FALSE(cache_probe_size(1e6, kCaches));
  CHECK_FALSE(cache_probe_size(0, kCaches));
  CHECK_FALSE(cache_probe_size(std::nan(""), kCaches));
  CHECK_FALSE(cache_probe_size(64.0 * kMiB, 0));  // caches unknown
  for (double bytes = 1.1 * kMiB; bytes < 120.0 * kMiB; bytes *= 1.07) {
    const auto size = cache_probe_size(bytes, kCaches);
    REQUIRE(size);
    CHECK(static_cast<double>(*size) / bytes > 0.55);  // whole MiB: the smallest are rounded most
    CHECK(static_cast<double>(*size) / bytes < 1.1);
  }
}

TEST_CASE("one probe for each size, the newest eight") {
  CacheProbes probes;
  for (Bytes size = 1; size <= 10; ++size) probes.add({{}, size * kMiB, 1e9});
  CHECK(probes.all().size() == kCacheProbesKept);
  CHECK(probes.find(2 * kMiB) == nullptr);
  REQUIRE(probes.find(3 * kMiB) != nullptr);
  probes.add({{}, 3 * kMiB, 2e9});
  CHECK(probes.all().size() == kCacheProbesKept);
  CHECK(probes.find(3 * kMiB)->ceiling == 2e9);
  CHECK(probes.all().back().working_set == 3 * kMiB);
}

TEST_CASE("over 1.15 of the ceiling the caches help") {
  CHECK_FALSE(cache_assisted({{}, kMiB, 1.15e9}, 1e9));
  CHECK(cache_assisted({{}, kMiB, 1.16e9}, 1e9));
}
