// rooflined replay: a capture file through the whole line. The figures do not depend on the machine.

#include "collectors/tap/packet_source.h"
#include "daemon/commands.h"
#include "daemon/model_geometry.h"
#include "daemon/number_option.h"
#include "daemon/replay_report.h"
#include "daemon/signals.h"
#include "daemon/trace_file.h"
#include "daemon/trace_report.h"
#include "daemon/wiring.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rooflined::daemon {
namespace {

constexpr int kExitNothing = 1;
constexpr int kExitBadInput = 2;
constexpr int kExitInterrupted = 130;

struct ReplayOptions {
  std::string capture;
  std::vector<std::uint16_t> ports = {8080, 8000, 30000, 11434, 3000, 1234, 5001, 23333};
  std::string model;
  std::optional<double> ceiling;
  std::string kv_cache_type;
  double replicas = 1;
  bool json = false;
};

int print(const nlohmann::json& report, const ReplayOptions& options, const char* nothing) {
  const std::string text = options.json ? report.dump() + "\n" : replay_table(report);
  std::fputs(text.c_str(), stdout);
  if (!report["targets"].empty()) return 0;
  std::fprintf(stderr, "rooflined replay: %s: %s\n", options.capture.c_str(), nothing);
  return kExitNothing;
}

int fail(const std::string& line) {
  std::fprintf(stderr, "rooflined replay: %s\n", line.c_str());
  return kExitBadInput;
}

// A trace holds what the ledger settled; the requests and the capture are not in it.
int replay_trace(const ReplayOptions& options) {
  TraceReport trace;
  const auto reading = read_trace(options.capture, trace);
  if (!reading) return fail(reading.error().message());
  if (reading->bad_lines > 0) {
    std::fprintf(stderr, "rooflined replay: %s: %llu of %llu lines are not of a trace\n", options.capture.c_str(),
                 static_cast<unsigned long long>(reading->bad_lines), static_cast<unsigned long long>(reading->lines));
  }
  return print(trace.json(options.ceiling), options, "no settled interval in it");
}

int replay(const ReplayOptions& options) {
  if (is_trace(options.capture)) return replay_trace(options);
  std::shared_ptr<const Geometry> geometry;
  if (!options.model.empty()) {
    auto loaded = load_geometry(options.model, {options.kv_cache_type, {}, {}});
    if (!loaded) return fail(loaded.error().message());
    geometry = std::move(*loaded);
  }
  auto source = tap::open_file(options.capture);
  if (!source) return fail(source.error().message());

  LatencyLogs latencies;
  LineOptions line_options;
  line_options.ports = options.ports;
  line_options.local_only = false;
  line_options.targets.windows = {{"1m", std::chrono::minutes(1)}};
  for (const std::uint16_t port : options.ports) {
    TargetSettings settings;
    settings.port = port;
    settings.replicas = options.replicas;
    settings.device = Device::kCpu;  // --ceiling is what it is held against
    line_options.targets.settings.push_back(settings);
  }
  line_options.observer_for = [&latencies](const Endpoint& endpoint) -> RecordObserver* {
    return (latencies[endpoint] = std::make_unique<LatencyLog>()).get();
  };
  Targets* targets = nullptr;
  line_options.on_found = [&](const Targets::Found& found) {
    TargetFacts facts;
    facts.geometry = geometry;
    targets->learn(found.endpoint, facts);
  };
  Line line(line_options);
  targets = &line.targets();

  const StopSignals stop;
  std::optional<Error> damage;
  const bool progress = isatty(STDERR_FILENO) != 0;
  auto shown_at = std::chrono::steady_clock::now();
  while (!stop.received()) {
    const auto outcome = (*source)->read(line, std::chrono::milliseconds(0));
    if (!outcome) {
      damage = outcome.error();
      break;
    }
    if (*outcome == tap::ReadOutcome::kFinished) break;
    const auto now = std::chrono::steady_clock::now();
    if (progress && now - shown_at > std::chrono::seconds(1)) {
      shown_at = now;
      std::fprintf(stderr, "\r%llu packets", static_cast<unsigned long long>((*source)->stats().packets));
    }
  }
  if (stop.received()) return kExitInterrupted;
  line.finish();
  if (damage) std::fprintf(stderr, "rooflined replay: %s; what came before it is counted\n", damage->message().c_str());

  const nlohmann::json report = replay_json(replay_totals(line), line, latencies, options.ceiling);
  const int status = print(report, options, "no exchange of an inference server on the watched ports (--port)");
  return damage ? kExitNothing : status;
}

}  // namespace

void add_replay_command(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand("replay", "Runs a capture file through the whole line and prints what it shows");
  auto options = std::make_shared<ReplayOptions>();
  command->add_option("CAPTURE", options->capture, "pcap or pcapng file, or a trace of `rooflined run --trace`")
      ->required();
  command->add_option("--port", options->ports, "port of a server, instead of the usual ones; may be repeated")
      ->check(CLI::Range(1, 65535));
  command->add_option("--model", options->model, "model file of the server, for bytes and MBU");
  command->add_option("--ceiling", options->ceiling, "bandwidth of the memory in bytes/s, for MBU")
      ->check(number_between(1e6, 1e15));
  command->add_option("--kv-cache-type", options->kv_cache_type, "type of the KV cache: T, or K,V (default f16)");
  command->add_option("--replicas", options->replicas, "engines behind the port (default 1)")
      ->check(number_between(1, 1e4));
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &exit_status] { exit_status = replay(*options); });
}

}  // namespace rooflined::daemon
