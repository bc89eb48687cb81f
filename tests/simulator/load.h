// Drives an OpenAI-compatible server and measures what its clients see.
//
//   in:   where, how many at a time (or how many a second), how long, how big, how patient
//   out:  requests, tokens, time to first token, inter-token latency, goodput
//
// A token is a frame that carries text, until the server's own total says otherwise. Times are taken when the client's
// thread has the frame. Bounds: LoadOptions::concurrency threads, or kInFlightMax with arrivals at random.
// Thread rule: run() on one thread; progress() and stop() from any.

#pragma once

#include "tests/simulator/load_pattern.h"
#include "tests/simulator/samples.h"
#include "tests/simulator/stream_client.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace rooflined::simulator {

constexpr std::size_t kInFlightMax = 1024;

struct LoadOptions {
  ClientOptions client;
  LoadPattern pattern;
  double slow_share = 0;                 // of the requests: whose clients read far slower than the server writes
  std::chrono::nanoseconds duration{0};  // no request begins later; those in flight run to their end
  std::chrono::nanoseconds warm_up{0};   // requests that begin earlier are sent, and in none of the figures
  // A request is good that meets both (the second by its mean); without any, whatever completes is good.
  std::optional<double> ttft_seconds_max;
  std::optional<double> itl_seconds_max;
  std::uint64_t seed = 1;
};

struct LoadResult {
  std::uint64_t completed = 0;
  std::uint64_t good = 0;
  std::uint64_t left = 0;                       // by clients that leave in the middle
  std::uint64_t cut = 0;                        // by us, before their end
  std::uint64_t skipped = 0;                    // arrivals that found kInFlightMax in flight
  std::map<std::string, std::uint64_t> failed;  // by reason
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  double elapsed_seconds = 0;  // from the first request that counts to the last frame
  Samples ttft_seconds;
  Samples itl_seconds;
  Samples request_seconds;

  std::uint64_t failures() const;
};

struct LoadProgress {
  std::size_t in_flight = 0;
  std::uint64_t completed = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t failures = 0;
};

class Load {
 public:
  explicit Load(LoadOptions options);

  LoadResult run();
  LoadProgress progress() const;
  // Cuts what is in flight and lets run() end with what there is. Call it again while run() goes on: a request that is
  // just being sent may miss it.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  void loop_client(std::size_t index);
  void arrive_at_random();
  void run_one(StreamClient& client, std::uint64_t number);
  Manner draw_manner(std::uint64_t number) const;
  void book(const StreamResult& result);
  bool is_good(const StreamResult& result) const;
  bool sleep_until(Clock::time_point at);
  bool over() const { return stopping_ || Clock::now() >= deadline_; }

  LoadOptions options_;
  Clock::time_point counts_from_;
  Clock::time_point deadline_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::size_t> in_flight_ = 0;
  std::atomic<std::uint64_t> tokens_seen_ = 0;

  mutable std::mutex mutex_;
  LoadResult result_;                // guarded by mutex_
  std::set<StreamClient*> clients_;  // guarded by mutex_
};

}  // namespace rooflined::simulator
