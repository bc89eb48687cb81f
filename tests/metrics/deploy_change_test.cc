#include "metrics/deploy_change.h"

#include "tests/support/catch.h"

#include <cmath>
#include <vector>

using namespace rooflined;

namespace {

// Slices one after the other; alternately a little above and below `rate`.
std::vector<DeploySlice> steady(std::int64_t first, int count, double rate, double batch = 4, double context = 500) {
  std::vector<DeploySlice> slices;
  for (int i = 0; i < count; ++i) {
    DeploySlice slice;
    slice.index = first + i;
    slice.log_batch = static_cast<float>(std::log(batch));
    slice.log_context = static_cast<float>(std::log(context));
    slice.log_rate = static_cast<float>(std::log(rate) + (i % 2 == 0 ? 0.01 : -0.01));
    slice.log_itl = static_cast<float>(-std::log(rate));
    slice.bytes_known = true;
    slices.push_back(slice);
  }
  return slices;
}

}  // namespace

TEST_CASE("a change is told from sixty slices before and twelve after on") {
  const auto before = steady(0, 60, 10e9);
  const auto after = steady(100, 12, 8e9);
  const auto change = deploy_change(before, after, ChangeOf::kRate);
  REQUIRE(change);
  CHECK(change->ratio == Approx(0.8));
  CHECK(change->low < 0.8);
  CHECK(change->high > 0.8);
  CHECK(change->high < 0.85);
  CHECK(change->slices == 12);
  CHECK_FALSE(deploy_change(steady(0, 59, 10e9), after, ChangeOf::kRate));
  CHECK_FALSE(deploy_change(before, steady(100, 11, 8e9), ChangeOf::kRate));
}

TEST_CASE("the latency's change is that of its own column") {
  const auto change = deploy_change(steady(0, 60, 10e9), steady(100, 12, 8e9), ChangeOf::kItl);
  REQUIRE(change);
  CHECK(change->ratio == Approx(1.25));
}

TEST_CASE("a restart alone is worth two per cent") {
  const auto change = deploy_change(steady(0, 2000, 10e9), steady(3000, 2000, 10e9), ChangeOf::kRate);
  REQUIRE(change);
  CHECK(change->ratio == Approx(1));
  CHECK(std::log(change->high) == Approx(0.02).epsilon(0.02));
}

TEST_CASE("work that was not there before is not compared") {
  const auto before = steady(0, 100, 10e9);
  CHECK_FALSE(deploy_change(before, steady(200, 50, 6e9, 1), ChangeOf::kRate));
  CHECK_FALSE(deploy_change(before, steady(200, 50, 6e9, 4, 5000), ChangeOf::kRate));
  auto mixed = steady(200, 50, 6e9, 1);
  const auto alike = steady(300, 12, 10e9);
  mixed.insert(mixed.end(), alike.begin(), alike.end());
  const auto change = deploy_change(before, mixed, ChangeOf::kRate);
  REQUIRE(change);
  CHECK(change->slices == 12);
  CHECK(change->ratio == Approx(1));
}

TEST_CASE("what batch and context do to the rate is taken out") {
  std::vector<DeploySlice> before;
  std::vector<DeploySlice> after;
  const auto add = [](std::vector<DeploySlice>& to, std::int64_t index, double batch, double context, double factor) {
    const double rate = factor * 5e9 * std::pow(batch, 0.2) * std::pow(context, -0.1);
    auto slice = steady(index, 1, rate, batch, context).front();
    slice.log_rate = static_cast<float>(std::log(rate) + (index % 3 == 0 ? 0.004 : -0.002));
    to.push_back(slice);
  };
  for (int i = 0; i < 200; ++i) add(before, i, 4 + 0.2 * (i % 17), 520 + 20.0 * (i % 23), 1);
  for (int i = 0; i < 60; ++i) add(after, 300 + i, 7 + 0.1 * (i % 5), 900 + 4.0 * (i % 7), 0.9);
  const auto change = deploy_change(before, after, ChangeOf::kRate);
  REQUIRE(change);
  CHECK(change->ratio == Approx(0.9).epsilon(0.002));
  CHECK(change->high < 0.93);
}

TEST_CASE("slices without bytes count for the latency only") {
  auto before = steady(0, 100, 10e9);
  for (auto& slice : before) slice.bytes_known = false;
  const auto after = steady(200, 20, 10e9);
  CHECK_FALSE(deploy_change(before, after, ChangeOf::kRate));
  CHECK(deploy_change(before, after, ChangeOf::kItl));
}

TEST_CASE("rates that wander are less sure than rates that jitter") {
  auto jitter = steady(0, 240, 10e9);
  auto wander = jitter;
  for (std::size_t i = 0; i < jitter.size(); ++i) {
    const double fast = i % 2 == 0 ? 0.05 : -0.05;
    const double slow = (i / 12) % 2 == 0 ? 0.05 : -0.05;
    jitter[i].log_rate = static_cast<float>(std::log(10e9) + fast);
    wander[i].log_rate = static_cast<float>(std::log(10e9) + slow);
  }
  const auto after = steady(300, 24, 9e9);
  const auto sure = deploy_change(jitter, after, ChangeOf::kRate);
  const auto unsure = deploy_change(wander, after, ChangeOf::kRate);
  REQUIRE(sure);
  REQUIRE(unsure);
  CHECK(sure->high < 0.95);
  CHECK(unsure->high > 1);
}

TEST_CASE("where a few slices hang together nothing is said") {
  auto before = steady(0, 60, 10e9);
  for (std::size_t i = 0; i < before.size(); ++i) {
    before[i].log_rate = static_cast<float>(std::log(10e9) + 0.02 * static_cast<double>(i));  // it drifts
  }
  CHECK_FALSE(deploy_change(before, steady(100, 20, 10e9), ChangeOf::kRate));
}

TEST_CASE("rates that are all the same divide nothing by zero") {
  auto before = steady(0, 60, 10e9);
  for (auto& slice : before) slice.log_rate = 23;
  auto after = steady(100, 12, 10e9);
  for (auto& slice : after) slice.log_rate = 23;
  const auto change = deploy_change(before, after, ChangeOf::kRate);
  REQUIRE(change);
  CHECK(change->ratio == Approx(1));
}
