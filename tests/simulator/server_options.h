// What the simulated server is, live or in a capture. Plain data.

#pragma once

#include "tests/simulator/engine.h"
#include "tests/simulator/frame_maker.h"
#include "tests/simulator/load_pattern.h"
#include "tests/simulator/model.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rooflined::simulator {

// Which replica a request goes to.
enum class Balance : std::uint8_t { kRandom, kLeastLoaded };

struct ServerOptions {
  EngineOptions engine;  // of each replica
  Model model;
  std::string dialect = "openai";  // one of dialect_names()
  FrameOptions frames;
  std::string version;  // empty: the dialect's own
  std::size_t replicas = 1;
  Balance balance = Balance::kLeastLoaded;
  double cached_share = 0;      // of each prompt, in [0, 1]
  std::vector<Change> changes;  // ascending in time
};

// How many tokens of a prompt are in the cache already; the last one never is.
inline std::uint64_t cached_tokens(std::uint64_t prompt_tokens, double share) {
  const auto cached = static_cast<std::uint64_t>(static_cast<double>(prompt_tokens) * share);
  return cached < prompt_tokens ? cached : prompt_tokens - 1;
}

// The engine's part of a change.
inline void apply(const Change& change, EngineOptions& engine) {
  engine.bandwidth = change.bandwidth.value_or(engine.bandwidth);
  engine.efficiency = change.efficiency.value_or(engine.efficiency);
  engine.prefill_tokens_per_second = change.prefill_tokens_per_second.value_or(engine.prefill_tokens_per_second);
  engine.overhead_seconds = change.overhead_seconds.value_or(engine.overhead_seconds);
}

}  // namespace rooflined::simulator
