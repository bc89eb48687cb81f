// The options of `serve`, `serve --pcap` and of the clients of `load`, as far as they share them.

#pragma once

#include "metrics/base/result.h"
#include "tests/simulator/load_pattern.h"
#include "tests/simulator/server_options.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rooflined::simulator {

// What the command line holds before it has been understood.
struct ServerArguments {
  std::string model;
  std::string kv_cache_type = "f16";
  std::string routing = "expected";
  std::string balance = "least-loaded";
  std::vector<std::string> changes;
  bool hide_drafts = false;
  ServerOptions options;
};

void add_server_options(CLI::App& command, ServerArguments& arguments);
// Reads the model and the changes.
Result<ServerOptions> server_options(const ServerArguments& arguments, bool with_load);

struct PatternArguments {
  std::optional<std::size_t> concurrency;
  std::optional<double> rate;
  std::string prompt_tokens = "64";
  std::string output_tokens = "128";
  LoadPattern pattern;
};

// `with_arrivals`: --concurrency and --rate too.
void add_pattern_options(CLI::App& command, PatternArguments& arguments, bool with_arrivals = true);
Result<LoadPattern> load_pattern(const PatternArguments& arguments);

}  // namespace rooflined::simulator
