#include "metrics/step_integral.h"

#include <algorithm>

namespace rooflined {

void StepIntegral::add(LineTime at, std::int64_t delta) {
  if (delta == 0) return;
  // Most steps are the latest so far; the others are at most seconds old: search from the end.
  std::size_t index = steps_.size();
  while (index > 0 && steps_[index - 1].at > at) --index;
  if (index > 0 && steps_[index - 1].at == at) {
    --index;
  } else {
    const std::int64_t before = index == 0 ? 0 : steps_[index - 1].value;
    steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(index), Step{at, before, 0});
  }
  for (std::size_t i = index; i < steps_.size(); ++i) steps_[i].value += delta;
  recompute_from(index);
}

void StepIntegral::recompute_from(std::size_t index) {
  for (std::size_t i = index; i < steps_.size(); ++i) {
    if (i == 0) continue;  // the base keeps its cumulative: only differences are used
    const Step& before = steps_[i - 1];
    const auto width = static_cast<std::uint64_t>((steps_[i].at - before.at).count());
    steps_[i].cumulative = before.cumulative + height(before.value) * width;
  }
}

const StepIntegral::Step* StepIntegral::step_at(LineTime at) const {
  const auto fits = [&](std::size_t index) {
    return index < steps_.size() && steps_[index].at <= at && (index + 1 == steps_.size() || at < steps_[index + 1].at);
  };
  if (fits(last_)) return &steps_[last_];
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), at,
                                      [](LineTime time, const Step& step) { return time < step.at; });
  if (after == steps_.begin()) return nullptr;
  last_ = static_cast<std::size_t>(after - steps_.begin()) - 1;
  return &steps_[last_];
}

std::int64_t StepIntegral::value_at(LineTime at) const {
  const Step* step = step_at(at);
  return step == nullptr ? 0 : step->value;
}

std::uint64_t StepIntegral::cumulative_at(LineTime at) const {
  const Step* step = step_at(at);
  if (step == nullptr) return steps_.empty() ? 0 : steps_.front().cumulative;  // 0 before the first step
  return step->cumulative + height(step->value) * static_cast<std::uint64_t>((at - step->at).count());
}

double StepIntegral::integral(LineTime from, LineTime to) const {
  return static_cast<double>(cumulative_at(to) - cumulative_at(from));
}

void StepIntegral::forget_before(LineTime limit) {
  const auto first_kept = std::upper_bound(steps_.begin(), steps_.end(), limit,
                                           [](LineTime time, const Step& step) { return time < step.at; });
  if (first_kept - steps_.begin() < 2) return;
  steps_.erase(steps_.begin(), first_kept - 1);  // the step in force at `limit` stays as the base
}

}  // namespace rooflined
