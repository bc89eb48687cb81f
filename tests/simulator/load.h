// Drives an OpenAI-compatible server and measures what its clients see.
//
//   in:   where, how many at a time (or how many a second), how long, how big
//   out:  requests, tokens, time to first token, inter-token latency
//
// A token is a frame that carries text, until the server's own total says otherwise. Times are taken when the client's
// thread has the frame. Bounds: LoadOptions::concurrency threads, or kInFlightMax with arrivals at random.
// Thread rule: run() on one thread; progress() and stop() from any.

#pragma once

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
  std::size_t concurrency = 1;           // closed loop: each client sends its next request when the last one has ended
  std::optional<double> rate;            // instead: Poisson arrivals, requests per second
  std::chrono::nanoseconds duration{0};  // no request begins later; those in flight run to their end
  std::uint64_t seed = 1;
};

struct LoadResult {
  std::uint64_t completed = 0;
  std::uint64_t cut = 0;                        // by us, before their end
  std::uint64_t skipped = 0;                    // arrivals that found kInFlightMax in flight
  std::map<std::string, std::uint64_t> failed;  // by reason
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  double elapsed_seconds = 0;  // from the first request to the last frame
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
  void book(const StreamResult& result);
  bool sleep_until(Clock::time_point at);
  bool over() const { return stopping_ || Clock::now() >= deadline_; }

  LoadOptions options_;
  Clock::time_point deadline_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::size_t> in_flight_ = 0;
  std::atomic<std::uint64_t> tokens_seen_ = 0;

  mutable std::mutex mutex_;
  LoadResult result_;                // guarded by mutex_
  std::set<StreamClient*> clients_;  // guarded by mutex_
};

}  // namespace rooflined::simulator
