#include "tests/simulator/paced_engine.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace rooflined::simulator {
namespace {

// Later than this the machine was suspended or is far too slow; catching up would be a burst that no engine shows.
constexpr Duration kLatenessMax = std::chrono::milliseconds(250);
// How long stop() may have to wait for a sleeping engine.
constexpr Duration kSleepMax = std::chrono::milliseconds(100);

timespec to_timespec(Duration d) {
  timespec spec{};
  spec.tv_sec = static_cast<time_t>(d / std::chrono::seconds(1));
  spec.tv_nsec = static_cast<long>((d % std::chrono::seconds(1)).count());
  return spec;
}

MonotonicTime monotonic_now() {
  timespec spec{};
  clock_gettime(CLOCK_MONOTONIC, &spec);
  return MonotonicTime(std::chrono::seconds(spec.tv_sec) + std::chrono::nanoseconds(spec.tv_nsec));
}

}  // namespace

PacedReport& PacedReport::operator+=(const PacedReport& other) {
  truth += other.truth;
  running += other.running;
  waiting += other.waiting;
  slips += other.slips;
  slipped_seconds += other.slipped_seconds;
  return *this;
}

PacedEngine::PacedEngine(const EngineOptions& options, const Dialect& dialect, const FrameOptions& frames)
    : engine_(options), frames_(dialect, frames, options.seed), thread_([this] { run(); }) {}

PacedEngine::~PacedEngine() {
  stop();
  thread_.join();
}

void PacedEngine::stop() {
  stopping_ = true;
  const std::lock_guard lock(mutex_);
  wake_.notify_all();
}

ServeOutcome PacedEngine::serve(Response& response, const WriteFrame& write) {
  std::promise<ServeOutcome> outcome;
  auto result = outcome.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return ServeOutcome::kStopped;
    incoming_.push_back({&response, &write, &outcome});
    wake_.notify_all();
  }
  return result.get();
}

void PacedEngine::change(const EngineOptions& options, double warm_up_seconds) {
  const std::lock_guard lock(mutex_);
  changed_ = options;
  warm_up_seconds_ = warm_up_seconds;
}

PacedReport PacedEngine::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

void PacedEngine::run() {
  // The default slack of 50 µs would be an error of a tenth in a step of 0.5 ms.
  prctl(PR_SET_TIMERSLACK, 1UL);
  while (take_jobs()) {
    if (engine_.idle()) continue;
    plan(engine_.step());
    wait_for_step_end();
    if (stopping_) break;
    publish();  // a client that has its last frame finds its tokens in the report
    deliver();
    publish();  // with the clients that were lost
  }
  const std::lock_guard lock(mutex_);
  for (const Job& job : incoming_) job.outcome->set_value(ServeOutcome::kStopped);
  for (const auto& [id, job] : jobs_) job.outcome->set_value(ServeOutcome::kStopped);
}

// Hands new requests to the engine; while there is nothing to do, waits for one. False when it is time to stop.
bool PacedEngine::take_jobs() {
  std::vector<Job> jobs;
  {
    std::unique_lock lock(mutex_);
    if (engine_.idle() && incoming_.empty()) {
      wake_.wait(lock, [this] { return stopping_ || !incoming_.empty(); });
      step_end_ = monotonic_now();  // an idle engine has no schedule: the next one begins here
    }
    if (stopping_) return false;
    if (changed_) {
      engine_.reconfigure(std::move(*changed_));
      changed_.reset();
      if (warm_up_seconds_ > 0) engine_.warm_up(warm_up_seconds_);
    }
    jobs.swap(incoming_);
  }
  for (const Job& job : jobs) {
    const GenerationRequest& request = job.response->request;
    if (engine_.submit({job.response->id, request.prompt_tokens, request.output_tokens, job.response->cached_tokens})) {
      jobs_.emplace(job.response->id, job);
    } else {
      job.outcome->set_value(ServeOutcome::kRefused);
    }
  }
  return true;
}

// Makes what the step will write at its end.
void PacedEngine::plan(const Step& step) {
  step_end_ += from_seconds(step.seconds);
  writes_.clear();
  for (const Emission& emission : step.emissions) {
    const auto found = jobs_.find(emission.id);
    if (found == jobs_.end()) continue;
    Job& job = found->second;
    std::vector<std::string> writes = frames_.take(emission, *job.response, job.stream);
    if (emission.finished && writes.empty()) writes.emplace_back();
    for (std::size_t i = 0; i < writes.size(); ++i) {
      writes_.push_back({emission.id, std::move(writes[i]), emission.finished && i + 1 == writes.size()});
    }
  }
}

void PacedEngine::wait_for_step_end() {
  MonotonicTime now = monotonic_now();
  while (now < step_end_ && !stopping_) {
    const timespec until = to_timespec(std::min(step_end_, now + kSleepMax).since_epoch());
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    now = monotonic_now();
  }
  if (now - step_end_ <= kLatenessMax) return;
  ++slips_;
  slipped_seconds_ += to_seconds(now - step_end_);
  engine_.stall(to_seconds(now - step_end_));
  step_end_ = now;
}

void PacedEngine::deliver() {
  for (const PlannedWrite& planned : writes_) {
    const auto found = jobs_.find(planned.id);
    if (found == jobs_.end()) continue;  // lost a moment ago
    if (!planned.bytes.empty() && !(*found->second.write)(planned.bytes)) {
      engine_.cancel(planned.id);
      finish(planned.id, ServeOutcome::kLost);
    } else if (planned.last) {
      finish(planned.id, ServeOutcome::kDone);
    }
  }
}

void PacedEngine::finish(SequenceId id, ServeOutcome outcome) {
  const auto found = jobs_.find(id);
  found->second.outcome->set_value(outcome);
  jobs_.erase(found);
}

void PacedEngine::publish() {
  const std::lock_guard lock(mutex_);
  report_ = {engine_.truth(), engine_.running(), engine_.waiting(), slips_, slipped_seconds_};
}

}  // namespace rooflined::simulator
