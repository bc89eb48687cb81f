#include "collectors/ceiling/measurement_plan.h"

#include <algorithm>

namespace rooflined::ceiling {
namespace {

// With no ceiling yet, five quiet seconds are idle enough (design.md §4).
constexpr Duration kIdleForFirst = std::chrono::seconds(5);

}  // namespace

MeasurementPlan::MeasurementPlan(const Options& options, MonotonicTime now, std::optional<Duration> age)
    : options_(options), window_(now), schedule_(options.interval, options.seed, now, age) {}

std::optional<MeasurementPlan::Order> MeasurementPlan::look(MonotonicTime now, const IdleWindow::Look& look,
                                                            bool wanted, const History& history,
                                                            std::optional<Bytes> cache_size) {
  const Duration quiet = history.empty() ? std::min(kIdleForFirst, options_.idle_for) : options_.idle_for;
  window_.look(now, quiet, look);
  if (!wanted || !window_.idle()) return std::nullopt;
  const auto kind = due(now, history, cache_size.has_value());
  if (!kind) return std::nullopt;
  return Order{*kind, *kind == Schedule::Kind::kCache ? *cache_size : 0};
}

std::optional<Schedule::Kind> MeasurementPlan::due(MonotonicTime now, const History& history, bool cache_wanted) const {
  using Kind = Schedule::Kind;
  const auto ready = [&](Kind kind) { return schedule_.due(kind, now) ? std::optional(kind) : std::nullopt; };
  if (history.empty()) return ready(Kind::kFirst);
  if (schedule_.due(Kind::kRegular, now)) return Kind::kRegular;
  if (asked_for_) return ready(Kind::kAgain);
  if (history.young() || (history.newest_is_suspect() && !asked_again_)) return ready(Kind::kAgain);
  return cache_wanted ? ready(Kind::kCache) : std::nullopt;
}

void MeasurementPlan::ended(MonotonicTime now, const Order& order, Duration took, Outcome outcome,
                            const History& history) {
  const bool succeeded = outcome == Outcome::kAdopted || outcome == Outcome::kSuspect;
  schedule_.ended(order.kind, now, took, succeeded);
  window_.restart(now);
  if (succeeded && order.kind != Schedule::Kind::kCache) asked_for_ = false;
  if (succeeded && order.kind != Schedule::Kind::kCache) asked_again_ = order.kind == Schedule::Kind::kAgain;
  if (outcome == Outcome::kUnstable) window_.contended_until(schedule_.retry_at());
  if (outcome == Outcome::kSuspect && history.newest_is_low()) window_.contended_until(now + kAgainAfter);
}

void MeasurementPlan::set_options(const Options& options, MonotonicTime now) {
  options_.idle_for = options.idle_for;
  schedule_.set_interval(options.interval, now);
}

}  // namespace rooflined::ceiling
