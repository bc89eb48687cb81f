#include "tests/simulator/load.h"

#include "tests/simulator/task_threads.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace rooflined::simulator {
namespace {

using std::chrono::milliseconds;

// How long a client waits after a failure: a server that is down is asked a few times a second.
constexpr milliseconds kRetryPause{200};
// How long stop() may take to be noticed by a client that sleeps.
constexpr milliseconds kSleepMax{50};

}  // namespace

std::uint64_t LoadResult::failures() const {
  std::uint64_t count = 0;
  for (const auto& [reason, times] : failed) count += times;
  return count;
}

Load::Load(LoadOptions options) : options_(std::move(options)) {}

LoadResult Load::run() {
  const Clock::time_point begun = Clock::now();
  counts_from_ = begun + std::chrono::duration_cast<Clock::duration>(options_.warm_up);
  deadline_ = begun + std::chrono::duration_cast<Clock::duration>(options_.duration);
  std::vector<std::thread> threads;
  if (options_.pattern.rate) {
    threads.emplace_back([this] { arrive_at_random(); });
  } else {
    for (std::size_t i = 0; i < options_.pattern.concurrency; ++i) threads.emplace_back([this, i] { loop_client(i); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::lock_guard lock(mutex_);
  result_.elapsed_seconds = std::chrono::duration<double>(Clock::now() - counts_from_).count();
  return std::move(result_);
}

LoadProgress Load::progress() const {
  const std::lock_guard lock(mutex_);
  return {in_flight_, result_.completed, tokens_seen_, result_.failures()};
}

void Load::stop() {
  stopping_ = true;
  const std::lock_guard lock(mutex_);
  for (StreamClient* client : clients_) client->abandon();
}

void Load::loop_client(std::size_t index) {
  StreamClient client(options_.client, stopping_, tokens_seen_);
  for (std::uint64_t turn = 0; !over(); ++turn) run_one(client, index + turn * options_.pattern.concurrency);
}

void Load::arrive_at_random() {
  std::mt19937_64 random(options_.seed);
  std::exponential_distribution<double> gap_seconds(*options_.pattern.rate);
  TaskThreads requests;
  Clock::time_point arrival = Clock::now();
  for (std::uint64_t number = 0;; ++number) {
    arrival += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(gap_seconds(random)));
    if (arrival >= deadline_ || !sleep_until(arrival)) break;
    if (in_flight_ >= kInFlightMax) {
      const std::lock_guard lock(mutex_);
      ++result_.skipped;
      continue;
    }
    requests.enqueue([this, number] {
      StreamClient client(options_.client, stopping_, tokens_seen_);
      run_one(client, number);
    });
  }
  sleep_until(deadline_);
  requests.shutdown();
}

void Load::run_one(StreamClient& client, std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    clients_.insert(&client);
  }
  ++in_flight_;
  const bool counts = Clock::now() >= counts_from_;
  const StreamResult result = client.run(number, draw_manner(number));
  --in_flight_;
  {
    const std::lock_guard lock(mutex_);
    clients_.erase(&client);
    if (counts) book(result);
  }
  if (result.outcome == StreamOutcome::kFailed) sleep_until(Clock::now() + kRetryPause);
}

// By its number alone, so that a run can be repeated.
Manner Load::draw_manner(std::uint64_t number) const {
  std::seed_seq seed{options_.seed, number};
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> share;
  const LoadPattern& pattern = options_.pattern;
  Manner manner{pattern.prompt_tokens.draw(random), pattern.output_tokens.draw(random)};
  manner.stream = share(random) >= pattern.whole_share;
  manner.slow = share(random) < options_.slow_share;
  if (share(random) < pattern.abort_share) {
    manner.leave_after = 1 + static_cast<std::uint64_t>(share(random) * static_cast<double>(manner.output_tokens));
  }
  return manner;
}

// Requires: mutex_ is held.
void Load::book(const StreamResult& result) {
  if (result.outcome == StreamOutcome::kFailed) ++result_.failed[result.failure];
  if (result.outcome == StreamOutcome::kCut) ++result_.cut;
  if (result.outcome == StreamOutcome::kLeft) ++result_.left;
  if (result.outcome == StreamOutcome::kCompleted) {
    ++result_.completed;
    if (is_good(result)) ++result_.good;
    result_.prompt_tokens += result.prompt_tokens;
    result_.request_seconds.add(result.request_seconds);
  }
  result_.output_tokens += result.output_tokens;
  // One that was cut while it waited for its first token waited at least so long: left out, a queue that grows without
  // end would look short.
  const bool waits = result.outcome == StreamOutcome::kCut && result.ttft_seconds == 0;
  const double ttft = waits ? result.request_seconds : result.ttft_seconds;
  if (ttft > 0 && (!waits || ttft > options_.ttft_seconds_max.value_or(ttft))) result_.ttft_seconds.add(ttft);
  for (const double seconds : result.intervals_seconds) result_.itl_seconds.add(seconds);
}

bool Load::is_good(const StreamResult& result) const {
  if (options_.ttft_seconds_max && result.ttft_seconds > *options_.ttft_seconds_max) return false;
  if (!options_.itl_seconds_max || result.intervals_seconds.empty()) return true;
  const double sum = std::accumulate(result.intervals_seconds.begin(), result.intervals_seconds.end(), 0.0);
  return sum / static_cast<double>(result.intervals_seconds.size()) <= *options_.itl_seconds_max;
}

// False when stop() came first.
bool Load::sleep_until(Clock::time_point at) {
  for (Clock::time_point now = Clock::now(); now < at && !stopping_; now = Clock::now()) {
    std::this_thread::sleep_until(std::min(at, now + kSleepMax));
  }
  return !stopping_;
}

}  // namespace rooflined::simulator
