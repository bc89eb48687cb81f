// rooflined run: the daemon. Starts the parts in order, waits for signals, stops them in the reverse order.

#include "collectors/tap/packet_source.h"
#include "config/reader.h"
#include "daemon/capture_loop.h"
#include "daemon/commands.h"
#include "daemon/deploy_desk.h"
#include "daemon/deploy_state.h"
#include "daemon/exposure.h"
#include "daemon/logging.h"
#include "daemon/settings.h"
#include "daemon/trace_file.h"
#include "metrics/base/log.h"
#include "metrics/export/metrics_server.h"

#include <sys/prctl.h>
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

namespace rooflined::daemon {
namespace {

constexpr int kExitCannotRun = 1;
constexpr int kExitBadSettings = 2;
constexpr const char* kDefaultSettings = "/etc/rooflined/rooflined.toml";

struct RunOptions {
  std::string config_path = kDefaultSettings;
  bool config_named = false;
  std::string listen;
  std::string trace_path;
  std::string log_format = "text";
};

// The settings of the command line over those of the file; faults go to stderr, a line each.
bool read_settings(const RunOptions& options, config::Config& settings) {
  config::ConfigResult result = config::read_config_file(options.config_path);
  if (result.missing && !options.config_named) {
    result.errors.clear();
    log::info("no settings file {}: the defaults hold", options.config_path);
  }
  for (const config::ConfigError& error : result.errors) log::error("{}", error.text(options.config_path));
  if (!result.errors.empty()) return false;
  settings = result.config;
  if (!options.listen.empty()) settings.web.listen = options.listen;
  return true;
}

// Blocks the signals that the main thread waits for, so that no other thread gets them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

class Daemon {
 public:
  explicit Daemon(const RunOptions& options) : options_(options) {}

  int run() {
    start_logging(log::Level::kInfo, options_.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
    if (!read_settings(options_, settings_)) return kExitBadSettings;
    const sigset_t signals = block_signals();
    // No core file, no ptrace: bytes of other people's traffic pass through this memory.
    prctl(PR_SET_DUMPABLE, 0);
    if (const int status = start(); status != 0) return status;
    sd_notify(0, "READY=1");
    log::info("watching ports {} on {}; http://{}/metrics", ports_text(), settings_.capture.interface, web_->address());
    if (const auto exposure = exposure_of(settings_.web)) log::warning("{}", *exposure);
    wait(signals);
    sd_notify(0, "STOPPING=1");
    web_->stop();
    capture_->stop();
    desk_->stop();
    identifier_->stop();
    ceiling_->stop();
    return 0;
  }

 private:
  int start() {
    const tap::LiveOptions capture = live_options(settings_);
    metrics_export::MetricsServer::Options web = web_options(settings_);
    web_ = std::make_unique<metrics_export::MetricsServer>(
        web, [this] { return capture_ == nullptr ? nullptr : capture_->snapshot(); });
    auto source = tap::open_live(capture);
    if (!source) return fail(source.error());
    if (!options_.trace_path.empty()) {
      auto trace = TraceWriter::open(options_.trace_path);
      if (!trace) return fail(trace.error());
      trace_ = std::move(*trace);
    }
    LineOptions line = line_options(settings_);
    if (trace_ != nullptr) {
      line.observer_for = [this](const Endpoint& endpoint) { return trace_->observer(endpoint); };
    }
    ceiling_ = std::make_unique<CeilingKeeper>(ceiling_options(settings_), activity_);
    identifier_ = std::make_unique<Identifier>(settings_);
    const std::string& state = settings_.state.directory;
    desk_ = std::make_unique<DeployDesk>(DeployDesk::Options{state, control_socket_path(state)});
    line.deploys = {boot_id(), load_deploys(state)};
    capture_ = std::make_unique<CaptureLoop>(capture, std::move(*source), std::move(line), settings_.limits.cpu,
                                             activity_, *ceiling_, *identifier_, *desk_);
    if (const Status served = web_->start(); !served) return fail(served.error());
    ceiling_->start();
    identifier_->start();
    desk_->start();
    capture_->start();
    return 0;
  }

  int fail(const Error& error) {
    log::error("{}", error.message());
    return error.code == ErrorCode::kInvalid ? kExitBadSettings : kExitCannotRun;
  }

  std::string ports_text() const {
    std::string text;
    for (const std::uint16_t port : settings_.capture.ports) text += (text.empty() ? "" : ",") + std::to_string(port);
    return text;
  }

  // Until SIGINT or SIGTERM. SIGHUP reloads; meanwhile the watchdog is told that the capture thread goes round.
  void wait(const sigset_t& signals) {
    std::uint64_t rounds = 0;
    while (true) {
      constexpr timespec kWatchdogEvery{10, 0};
      const int signal = sigtimedwait(&signals, nullptr, &kWatchdogEvery);
      if (signal == SIGINT || signal == SIGTERM) return;
      if (signal == SIGHUP) reload();
      if (capture_->rounds() != rounds) sd_notify(0, "WATCHDOG=1");
      rounds = capture_->rounds();
    }
  }

  void reload() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld",
               static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000);
    config::Config settings;
    if (!read_settings(options_, settings)) {
      log::error("the settings are refused; the running ones stay");
    } else {
      if (needs_restart(settings_, settings)) {
        log::warning(
            "[web], [state], [capture], [windows] and a target's port, name, replicas, pipeline_parallel and "
            "speculative change with a restart only; the rest is reloaded");
      }
      settings.web = settings_.web;
      settings.state = settings_.state;
      settings.capture = settings_.capture;
      settings.windows = settings_.windows;
      settings_ = settings;
      ceiling_->reload(ceiling_options(settings_));
      capture_->set_settings(target_settings(settings_), settings_.limits.cpu);
      identifier_->reload(settings_);
      log::info("settings reloaded");
    }
    sd_notify(0, "READY=1");
  }

  RunOptions options_;
  config::Config settings_;
  Activity activity_;
  std::unique_ptr<TraceWriter> trace_;
  std::unique_ptr<CeilingKeeper> ceiling_;
  std::unique_ptr<Identifier> identifier_;
  std::unique_ptr<DeployDesk> desk_;
  std::unique_ptr<CaptureLoop> capture_;
  std::unique_ptr<metrics_export::MetricsServer> web_;
};

}  // namespace

void add_run_command(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand("run", "The daemon: watches, measures, and serves /metrics");
  auto options = std::make_shared<RunOptions>();
  auto* config =
      command->add_option("--config", options->config_path, "settings file; without the option a missing one is fine")
          ->capture_default_str();
  command->add_option("--listen", options->listen, "ADDRESS:PORT to serve on, instead of [web] listen");
  command->add_option("--trace", options->trace_path,
                      "write settled intervals (no text) to this file; `replay` reads it");
  command
      ->add_option("--log-format", options->log_format, "text, or json: an object a line with time, level and message")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->callback([options, config, &exit_status] {
    options->config_named = config->count() > 0;
    exit_status = Daemon(*options).run();
  });
}

}  // namespace rooflined::daemon
