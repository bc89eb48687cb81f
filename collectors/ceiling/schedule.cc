#include "collectors/ceiling/schedule.h"

#include <algorithm>

namespace rooflined::ceiling {
namespace {

constexpr Duration kPauseFirst = std::chrono::seconds(10);
constexpr Duration kPauseMax = std::chrono::hours(1);
// Idle days earn no more than this, or what one measurement costs here.
constexpr double kCreditMax = 30;

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

Duration scaled(Duration duration, double factor) {
  return from_seconds(to_seconds(duration) * factor);
}

}  // namespace

Schedule::Schedule(Duration interval, std::uint64_t seed, MonotonicTime now, std::optional<Duration> age)
    : interval_(interval), random_(seed), last_end_(now), regular_at_(now), retry_at_(now), credit_at_(now) {
  const double credit_first = to_seconds(kCreditFirst);
  credit_ = age ? std::clamp(kDutyMax * to_seconds(*age), 0.0, credit_first) : credit_first;
  if (age) regular_at_ = now + std::max(Duration(0), scaled(interval_, jittered()) - *age);
}

double Schedule::jittered() {
  const double uniform = static_cast<double>(next_random(random_) >> 11) * 0x1p-53;
  return 1 - kJitter + 2 * kJitter * uniform;
}

double Schedule::credit(MonotonicTime now) const {
  const double most = std::max(kCreditMax, *std::max_element(cost_.begin(), cost_.end()));
  return std::min(most, credit_ + kDutyMax * to_seconds(now - credit_at_));
}

bool Schedule::due(Kind kind, MonotonicTime now) const {
  if (now < retry_at_ || credit(now) < cost_[static_cast<std::size_t>(kind)]) return false;
  switch (kind) {
    case Kind::kFirst:
      return true;
    case Kind::kAgain:
    case Kind::kCache:
      return now - last_end_ >= kAgainAfter;
    case Kind::kRegular:
      return now >= regular_at_;
  }
  return false;
}

void Schedule::ended(Kind kind, MonotonicTime now, Duration took, bool succeeded) {
  credit_ = credit(now) - to_seconds(took);
  credit_at_ = now;
  last_end_ = now;
  if (succeeded) {
    failures_ = 0;
    cost_[static_cast<std::size_t>(kind)] = to_seconds(took);
    if (kind == Kind::kFirst || kind == Kind::kRegular) restart_interval(now);
    return;
  }
  ++failures_;
  Duration pause = kPauseFirst;
  for (unsigned i = 1; i < failures_ && pause < kPauseMax; ++i) pause *= 2;
  retry_at_ = now + scaled(std::min(pause, kPauseMax), jittered());
}

void Schedule::set_interval(Duration interval, MonotonicTime now) {
  regular_at_ = std::min(regular_at_, now + scaled(interval, jittered()));
  interval_ = interval;
  retry_at_ = now;
  failures_ = 0;
}

void Schedule::restart_interval(MonotonicTime now) {
  regular_at_ = now + scaled(interval_, jittered());
}

}  // namespace rooflined::ceiling
