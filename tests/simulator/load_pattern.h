// What clients ask of a server: how often, how much, and how they behave. And what changes while they do.
//
// Plain data.

#pragma once

#include "metrics/base/units.h"
#include "tests/simulator/lengths.h"

#include <cstddef>
#include <optional>
#include <string>

namespace rooflined::simulator {

struct LoadPattern {
  std::size_t concurrency = 1;  // closed loop: each client sends its next request when the last one has ended
  std::optional<double> rate;   // instead: Poisson arrivals, requests per second
  Lengths prompt_tokens = Lengths::fixed(64);
  Lengths output_tokens = Lengths::fixed(128);
  double whole_share = 0;  // of the requests: whose answers are not streamed
  double abort_share = 0;  // of the requests: whose clients leave in the middle
  bool ask_usage = true;
};

// From `at_seconds` after the start on. What is absent stays as it is.
struct Change {
  double at_seconds = 0;
  std::optional<BytesPerSecond> bandwidth;
  std::optional<double> efficiency;
  std::optional<double> prefill_tokens_per_second;
  std::optional<double> overhead_seconds;
  // The server was restarted: connections close, and for so long nobody is there.
  std::optional<double> restart_seconds;
  std::optional<std::string> version;
  double warm_up_seconds = 0;
  // Of the clients; not for a server.
  std::optional<std::size_t> concurrency;
  std::optional<double> rate;
  std::optional<Lengths> prompt_tokens;
  std::optional<Lengths> output_tokens;
};

}  // namespace rooflined::simulator
