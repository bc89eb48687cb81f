// Runs a Load on a thread of its own, shows how it goes on a terminal, and ends it on SIGINT or SIGTERM.

#pragma once

#include "tests/simulator/load.h"

#include <string>

namespace rooflined::simulator {

struct WatchedLoad {
  LoadResult result;
  bool interrupted = false;
};

// `cut`: what is in flight after the duration is cut off instead of awaited. `title` opens the line on the terminal.
WatchedLoad run_watched(const LoadOptions& options, bool cut, const std::string& title);

}  // namespace rooflined::simulator
