// Days of measuring on a fake clock with a fake probe: how often, how long, when not, and what is adopted.

#include "collectors/ceiling/measurement_plan.h"

#include "collectors/ceiling/observed_rate.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Kind = Schedule::Kind;

namespace {

constexpr Duration kEvery = milliseconds(500);
constexpr double kTruth = 31e9;

// What the machine does at one time of the day.
struct Weather {
  bool request = false;
  double cpus_busy = 0.02;
};

struct Run {
  Duration at{0};  // since the start
  Kind kind = Kind::kFirst;
  Outcome outcome = Outcome::kAdopted;
  Duration took{0};
};

// The keeper's loop, with a clock that is set forward and a probe that is a function.
class Days {
 public:
  explicit Days(MeasurementPlan::Options options = {}, std::optional<Duration> age = std::nullopt)
      : plan_(options, kStart, age), observed_(kStart) {}

  std::function<Weather(Duration)> weather = [](Duration) { return Weather(); };
  // The rate that a probe reads; none: it is unstable.
  std::function<std::optional<double>(Duration)> rate = [](Duration) { return kTruth; };
  std::optional<Bytes> cache_size;
  History history;
  std::vector<Run> runs;
  Duration idle{0};

  void run(Duration span) {
    for (const Duration end = time_ + span; time_ < end;) {
      time_ += kEvery;
      const Weather now = weather(time_);
      busy_seconds_ += now.cpus_busy * to_seconds(kEvery);
      if (now.request) busy_at_ = at();
      IdleWindow::Look look;
      look.wire = {true, now.request ? 1U : 0U, busy_at_};
      look.host.cpus = 2;
      look.host.busy_seconds = busy_seconds_;
      look.host.tasks = now.cpus_busy;
      const auto order = plan_.look(at(), look, true, history, cache_size);
      if (plan_.window().idle()) {
        idle += kEvery;
        observed_.idle(at());
      }
      observed_.see(at(), now.request ? 0.6 * kTruth : 0);
      if (order) probe(*order);
    }
  }

  const MeasurementPlan& plan() const { return plan_; }
  void doubt() { plan_.ask_again(); }
  std::optional<BytesPerSecond> observed() const { return observed_.ceiling(); }
  Duration measuring() const {
    Duration sum{0};
    for (const Run& run : runs) sum += run.took;
    return sum;
  }
  std::size_t count(Kind kind, Outcome outcome) const {
    return static_cast<std::size_t>(std::count_if(
        runs.begin(), runs.end(), [&](const Run& run) { return run.kind == kind && run.outcome == outcome; }));
  }

 private:
  static constexpr MonotonicTime kStart = MonotonicTime::from_ns(50'000'000'000);

  MonotonicTime at() const { return kStart + time_; }

  void probe(const MeasurementPlan::Order& order) {
    Duration whole = order.kind == Kind::kFirst ? seconds(15) : seconds(8);
    if (order.kind == Kind::kAgain || order.kind == Kind::kCache) whole = seconds(4);
    const Duration began = time_;
    bool stopped = false;
    while (time_ - began < whole && !stopped) {
      time_ += milliseconds(100);
      stopped = weather(time_).request;
    }
    busy_seconds_ += 2 * to_seconds(time_ - began);
    Outcome outcome = Outcome::kAborted;
    if (stopped) {
      busy_at_ = at();
    } else if (const auto measured = rate(time_); !measured) {
      outcome = Outcome::kUnstable;
    } else if (order.kind == Kind::kCache) {
      outcome = Outcome::kAdopted;
      cache_size.reset();
    } else {
      ConfirmedResult result;
      result.ceiling = *measured;
      result.median = 0.95 * *measured;
      outcome = history.take(result) == History::Judgement::kAdopted ? Outcome::kAdopted : Outcome::kSuspect;
    }
    plan_.ended(at(), order, time_ - began, outcome, history);
    runs.push_back(Run{began, order.kind, outcome, time_ - began});
  }

  MeasurementPlan plan_;
  ObservedRate observed_;
  Duration time_{0};
  std::optional<MonotonicTime> busy_at_;
  double busy_seconds_ = 1000;
};

void check_duty(const Days& days, Duration span) {
  // The first credit, a thousandth of the time, and that the last one may take longer than it was known to.
  CHECK(to_seconds(days.measuring()) <= 30 + kDutyMax * to_seconds(span) + 15);
}

}  // namespace

TEST_CASE("a doubt is settled in the next idle window, once") {
  Days days;
  days.run(hours(24));
  const std::size_t before = days.runs.size();
  days.doubt();
  days.run(minutes(20));
  REQUIRE(days.runs.size() == before + 1);
  CHECK(days.runs.back().kind == Kind::kAgain);
}

TEST_CASE("an idle day: the first at once, two more soon, then one every six hours") {
  Days days;
  days.run(hours(24));
  REQUIRE(days.runs.size() >= 6);
  CHECK(days.runs[0].kind == Kind::kFirst);
  CHECK(days.runs[0].at >= seconds(5));
  CHECK(days.runs[0].at <= seconds(7));
  // Both within the credit that a first start has.
  CHECK(days.runs[1].kind == Kind::kAgain);
  CHECK(days.runs[1].at - days.runs[0].at >= minutes(5));
  CHECK(days.runs[2].at <= minutes(15));
  CHECK(days.count(Kind::kAgain, Outcome::kAdopted) == 2);
  for (std::size_t i = 3; i < days.runs.size(); ++i) {
    CHECK(days.runs[i].kind == Kind::kRegular);
    const Duration pause = days.runs[i].at - (i == 3 ? days.runs[0].at : days.runs[i - 1].at);
    CHECK(pause >= minutes(323));
    CHECK(pause <= minutes(398));
  }
  CHECK(days.runs.size() <= 8);
  CHECK_FALSE(days.history.newest_is_suspect());
  check_duty(days, hours(24));
}

TEST_CASE("the jitter is the seed's, and within a tenth") {
  std::vector<Duration> firsts;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const MonotonicTime start = MonotonicTime::from_ns(1);
    // Half an hour old: due in 0.9 to 1.1 intervals less that.
    const auto due_after = [&] {
      const Schedule schedule(hours(6), seed, start, minutes(30));
      Duration after{0};
      while (!schedule.due(Kind::kRegular, start + after) && after < hours(12)) after += seconds(10);
      return after;
    };
    firsts.push_back(due_after());
    CHECK(firsts.back() == due_after());
    CHECK(firsts.back() >= minutes(294));
    CHECK(firsts.back() <= minutes(367));
  }
  std::sort(firsts.begin(), firsts.end());
  CHECK(firsts.back() - firsts.front() > minutes(50));
}

TEST_CASE("after a restart nothing is measured before its time, and an old ceiling is") {
  MeasurementPlan::Options options;
  Days fresh(options, hours(1));
  for (int i = 0; i < 3; ++i) fresh.history.restore(ConfirmedResult{{}, kTruth, kTruth, "linear", 2, 0, false, {}});
  fresh.run(hours(4));
  CHECK(fresh.runs.empty());
  Days old(options, hours(24 * 30));
  old.history = fresh.history;
  old.run(minutes(2));
  REQUIRE(old.runs.size() == 1);
  CHECK(old.runs[0].at >= seconds(60));
  CHECK(old.runs[0].kind == Kind::kRegular);
}

TEST_CASE("a setting of one minute still spends a thousandth of the time") {
  MeasurementPlan::Options options;
  options.interval = minutes(1);
  options.idle_for = seconds(1);
  Days days(options);
  days.run(hours(48));
  check_duty(days, hours(48));
  CHECK(days.runs.size() > 10);
}

TEST_CASE("starved: a node that serves without a pause is never measured, and observed after a day") {
  Days days;
  days.weather = [](Duration at) { return Weather{at % seconds(30) < seconds(28), 0.02}; };
  days.run(hours(23) + minutes(59));
  CHECK(days.runs.empty());
  CHECK_FALSE(days.observed());
  days.run(minutes(2));
  CHECK(days.runs.empty());
  CHECK(days.observed() == Approx(0.6 * kTruth));
}

TEST_CASE("what was observed of a starved node outlives a restart, and so do the hours until then") {
  const MonotonicTime start = MonotonicTime::from_ns(1);
  ObservedRate first(start);
  first.see(start + hours(20), 9e9);
  const ObservedRate::Kept half = first.kept(start + hours(20));
  CHECK(half.without_idle == Duration(hours(20)));
  CHECK(half.highest == 9e9);

  ObservedRate second(start, half);
  CHECK_FALSE(second.ceiling());
  second.see(start + hours(3), 7e9);
  CHECK_FALSE(second.ceiling());
  second.see(start + hours(4), 7e9);
  CHECK(second.ceiling() == 9e9);
  // For good: an idle moment that was too short for a measurement takes nothing back.
  second.idle(start + hours(5));
  const ObservedRate third(start, second.kept(start + hours(6)));
  CHECK(third.ceiling() == 9e9);

  ObservedRate idle(start, half);
  idle.idle(start + hours(1));
  CHECK(idle.kept(start + hours(2)).without_idle == Duration(hours(1)));
}

TEST_CASE("a doorbell that cannot hear keeps the window shut until the next try") {
  MeasurementPlan plan({}, MonotonicTime::from_ns(0), std::nullopt);
  const History none;
  MonotonicTime now = MonotonicTime::from_ns(0);
  IdleWindow::Look quiet;
  quiet.wire.capture_up = true;
  std::vector<Duration> tries;
  for (; tries.size() < 4 && now.since_epoch() < hours(1); now += kEvery) {
    const auto order = plan.look(now, quiet, true, none, std::nullopt);
    if (!order) continue;
    tries.push_back(now.since_epoch());
    plan.ended(now, *order, Duration(0), Outcome::kAborted, none);
    plan.doorbell_failed();
    plan.look(now, quiet, true, none, std::nullopt);
    CHECK(plan.window().reasons().at("capture"));
  }
  REQUIRE(tries.size() == 4);
  CHECK(tries[1] - tries[0] >= seconds(9));
  CHECK(tries[3] - tries[2] >= seconds(36));
}

TEST_CASE("a busy host is never measured, whatever the wire shows") {
  Days days;
  days.weather = [](Duration) { return Weather{false, 2}; };
  days.run(hours(24));
  CHECK(days.runs.empty());
  CHECK(days.idle == Duration(0));
}

TEST_CASE("one idle window a day is enough for a measurement, and for not being observed") {
  Days days;
  days.weather = [](Duration at) { return Weather{at % hours(24) < hours(23), 0.02}; };
  days.run(hours(24 * 3));
  CHECK(days.history.results().size() >= 3);
  CHECK_FALSE(days.observed());
  check_duty(days, hours(24 * 3));
}

TEST_CASE("flapping: windows too short for a measurement cost no more than the share") {
  Days days;
  // A request of a second every ten: the first measurement takes 15.
  days.weather = [](Duration at) { return Weather{at % seconds(10) < seconds(1), 0.02}; };
  days.run(hours(24));
  CHECK(days.history.empty());
  REQUIRE(days.runs.size() > 5);
  CHECK(days.count(Kind::kFirst, Outcome::kAborted) == days.runs.size());
  // Each pause is about twice the one before, until the credit is spent.
  for (std::size_t i = 2; i < 4; ++i) {
    const double ratio =
        to_seconds(days.runs[i].at - days.runs[i - 1].at) / to_seconds(days.runs[i - 1].at - days.runs[i - 2].at);
    CHECK(ratio > 1.2);
    CHECK(ratio < 2.8);
  }
  CHECK(days.runs.size() < 40);
  check_duty(days, hours(24));
}

TEST_CASE("flapping with a ceiling: idle_for keeps short windows from being tried") {
  Days days;
  days.run(hours(1));
  REQUIRE(days.runs.size() == 3);
  days.weather = [](Duration at) { return Weather{at % seconds(50) < seconds(1), 0.02}; };
  days.run(hours(48));
  CHECK(days.runs.size() == 3);
}

TEST_CASE("unstable measurements are tried again less and less often") {
  Days days;
  days.rate = [](Duration) { return std::nullopt; };
  days.run(hours(24));
  CHECK(days.history.empty());
  CHECK(days.count(Kind::kFirst, Outcome::kUnstable) == days.runs.size());
  CHECK(days.runs.size() <= 9);
  check_duty(days, hours(24));
  days.rate = [](Duration) { return kTruth; };
  days.run(hours(24));
  CHECK_FALSE(days.history.empty());
}

TEST_CASE("a suspect result has the winner alone run again in a later window, once") {
  Days days;
  days.run(hours(5));
  REQUIRE(days.history.results().size() == 3);
  const std::size_t before = days.runs.size();
  days.rate = [](Duration) { return 0.5 * kTruth; };
  days.run(hours(4));
  REQUIRE(days.runs.size() == before + 2);
  CHECK(days.runs[before].kind == Kind::kRegular);
  CHECK(days.runs[before].outcome == Outcome::kSuspect);
  CHECK(days.runs[before + 1].kind == Kind::kAgain);
  CHECK(days.runs[before + 1].at - days.runs[before].at >= minutes(5));
  CHECK(days.history.adopted()->ceiling == kTruth);
}

TEST_CASE("a first ceiling made under load that no reading showed is put right within the hour") {
  Days days;
  days.rate = [](Duration at) { return at < minutes(2) ? 0.3 * kTruth : kTruth; };
  days.run(hours(1));
  CHECK(days.history.adopted()->ceiling == kTruth);
}

TEST_CASE("forty windows, half of them contended: adopted within five per cent of the truth") {
  int wrong = 0;
  for (unsigned seed = 0; seed < 3; ++seed) {
    MeasurementPlan::Options options;
    options.seed = seed;
    Days days(options);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> contended(0.3, 0.95);
    days.rate = [&](Duration) { return kTruth * (random() % 2 == 0 ? contended(random) : 1.0); };
    while (days.runs.size() < 40) days.run(hours(6));
    wrong += std::abs(days.history.adopted()->ceiling / kTruth - 1) > 0.05 ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a probe of a model's size comes beside the ceiling, from what is left of the credit") {
  Days days;
  days.cache_size = 300 * kMiB;
  days.run(hours(6));
  CHECK(days.count(Kind::kCache, Outcome::kAdopted) == 1);
  CHECK(days.count(Kind::kAgain, Outcome::kAdopted) == 2);
  CHECK_FALSE(days.cache_size);
  check_duty(days, hours(6));
}

TEST_CASE("settings that change hold at once; a result from elsewhere puts the next one off") {
  const MonotonicTime start = MonotonicTime::from_ns(1);
  Schedule schedule(hours(24), 7, start, hours(20));
  CHECK_FALSE(schedule.due(Kind::kRegular, start + minutes(70)));
  schedule.set_interval(hours(1), start);
  CHECK(schedule.due(Kind::kRegular, start + minutes(67)));
  schedule.restart_interval(start + minutes(60));
  CHECK_FALSE(schedule.due(Kind::kRegular, start + minutes(110)));
  CHECK(schedule.due(Kind::kRegular, start + minutes(127)));
}

TEST_CASE("a probe that costs more than any credit is made all the same, and paid for") {
  Schedule schedule(hours(6), 7, MonotonicTime::from_ns(0), std::nullopt);
  const MonotonicTime end = MonotonicTime(seconds(110));
  schedule.ended(Kind::kFirst, end, seconds(100), true);
  CHECK(schedule.credit(end) < -60);
  CHECK_FALSE(schedule.due(Kind::kRegular, end + hours(20)));
  CHECK(schedule.due(Kind::kRegular, end + hours(24)));
  // The same kind waits for all that it took last time.
  CHECK_FALSE(schedule.due(Kind::kFirst, end + hours(40)));
  CHECK(schedule.due(Kind::kFirst, end + hours(50)));
}
