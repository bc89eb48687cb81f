// rooflined-sim serve: the simulated engine behind an HTTP port, until a signal; or a run of it as a capture file.

#include "tests/simulator/capture_run.h"
#include "tests/simulator/commands.h"
#include "tests/simulator/dialect.h"
#include "tests/simulator/option_units.h"
#include "tests/simulator/server.h"
#include "tests/simulator/server_arguments.h"

#include <fmt/format.h>

#include <pthread.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace rooflined::simulator {
namespace {

using Clock = std::chrono::steady_clock;

struct ServeArguments {
  std::string listen = "127.0.0.1:8080";
  ServerArguments server;
  std::string capture;
  std::string path;
  std::optional<double> duration_seconds;
  PatternArguments pattern;
};

struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;
};

// "127.0.0.1:8080", "[::1]:8080", "localhost:0".
std::optional<ListenAddress> parse_listen(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size() || text.size() - colon > 6) return {};
  const std::string digits = text.substr(colon + 1);
  if (digits.find_first_not_of("0123456789") != std::string::npos) return {};
  const unsigned long port = std::stoul(digits);
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (port > 65535 || host.empty()) return {};
  return ListenAddress{host, static_cast<std::uint16_t>(port)};
}

int fail(const Error& error) {
  fmt::print(stderr, "rooflined-sim: {}\n", error.message());
  return 2;
}

// Requires: every thread has `signals` blocked. The signal that came first, if one did.
std::optional<int> wait_for_signal(const sigset_t& signals, Clock::time_point until) {
  while (true) {
    const auto left = std::max(until - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec pause{seconds.count(), static_cast<long>(std::chrono::nanoseconds(left - seconds).count())};
    const int signal = sigtimedwait(&signals, nullptr, &pause);
    if (signal > 0) return signal;
    if (Clock::now() >= until) return std::nullopt;
  }
}

// One life of the server, from start to restart or to the end.
class Life {
 public:
  Life(const ServerOptions& options, const PacedReport& before) : server_(options, before) {}
  ~Life() {
    if (!accepting_.joinable()) return;
    server_.stop();
    accepting_.join();
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  Result<std::uint16_t> start(const ListenAddress& listen) {
    auto port = server_.bind(listen.host, listen.port);
    if (port) accepting_ = std::thread([this] { server_.run(); });
    return port;
  }
  Server& server() { return server_; }

 private:
  Server server_;
  std::thread accepting_;
};

// Serves and makes the changes at their times, until a signal.
int serve_live(ServerOptions options, ListenAddress listen, const std::string& shown_host) {
  // Every thread inherits the mask, so that only sigtimedwait() sees these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Clock::time_point begun = Clock::now();
  const auto after = [begun](double seconds) {
    return begun + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  constexpr double kForEverSeconds = 1e9;
  auto life = std::make_unique<Life>(options, PacedReport{});
  auto port = life->start(listen);
  if (!port) return fail(port.error());
  listen.port = *port;
  fmt::print(stderr, "rooflined-sim: serving {} on http://{}:{}\n", options.model.name, shown_host, *port);
  std::optional<int> signal;
  for (const Change& change : options.changes) {
    signal = wait_for_signal(signals, after(change.at_seconds));
    if (signal) break;
    apply(change, options.engine);
    options.version = change.version.value_or(options.version);
    if (!change.restart_seconds) {
      life->server().change(change);
      continue;
    }
    const PacedReport before = life->server().report();
    life.reset();
    signal = wait_for_signal(signals, after(change.at_seconds + *change.restart_seconds));
    if (signal) break;
    life = std::make_unique<Life>(options, before);
    if (change.warm_up_seconds > 0) life->server().change(change);
    port = life->start(listen);
    if (!port) return fail(port.error());
  }
  if (!signal) signal = wait_for_signal(signals, after(kForEverSeconds));
  return signal == SIGINT ? 130 : 0;
}

// The generation route to use: by its path, else the dialect's usual one.
Result<RoutePath> choose_route(const std::string& dialect, const std::string& path) {
  const std::vector<RoutePath> routes = make_dialect(dialect)->routes();
  if (path.empty()) return routes.front();
  const auto found = std::ranges::find(routes, path, &RoutePath::path);
  if (found != routes.end()) return *found;
  std::vector<std::string_view> paths;
  for (const RoutePath& route : routes) paths.push_back(route.path);
  return Error{ErrorCode::kInvalid, "--path " + path, fmt::format("{} has {}", dialect, fmt::join(paths, ", "))};
}

int serve(const ServeArguments& arguments) {
  const auto listen = parse_listen(arguments.listen);
  if (!listen) return fail({ErrorCode::kInvalid, "--listen " + arguments.listen, "HOST:PORT is needed"});
  const bool to_file = !arguments.capture.empty();
  auto options = server_options(arguments.server, to_file);
  if (!options) return fail(options.error());
  if (!to_file) {
    return serve_live(std::move(*options), *listen, arguments.listen.substr(0, arguments.listen.rfind(':')));
  }
  CaptureRunOptions run;
  run.server = std::move(*options);
  const auto load = load_pattern(arguments.pattern);
  if (!load) return fail(load.error());
  run.load = *load;
  if (!arguments.duration_seconds) return fail({ErrorCode::kInvalid, "--pcap", "--duration is needed"});
  run.duration_seconds = *arguments.duration_seconds;
  const auto route = choose_route(run.server.dialect, arguments.path);
  if (!route) return fail(route.error());
  run.route = route->route;
  run.path = route->path;
  run.port = listen->port;
  run.seed = run.server.engine.seed;
  return write_capture(run, arguments.capture);
}

}  // namespace

void add_serve_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("serve", "An OpenAI-compatible server with a simulated engine");
  auto arguments = std::make_shared<ServeArguments>();
  auto* where = command->add_option_group("where");
  where->add_option("--listen", arguments->listen, "HOST:PORT; port 0 takes a free one");
  auto* capture = where->add_option("--pcap", arguments->capture,
                                    "Instead of serving, write a run under the load below as this capture file, and "
                                    "the truth about it to stdout; --listen names the server in it");
  where->require_option(1, 2);
  add_server_options(*command, arguments->server);
  auto* load = command->add_option_group("load", "Of --pcap");
  load->add_option("--duration", arguments->duration_seconds, "No request begins later: 30s, 5m")
      ->transform(duration_unit())
      ->check(above_zero())
      ->check(CLI::Range(0.0, 3.2e7));
  load->add_option("--path", arguments->path, "The generation route, e.g. /v1/completions");
  add_pattern_options(*load, arguments->pattern);
  for (CLI::Option* option : load->get_options()) option->needs(capture);
  command->callback([arguments, &exit_status] { exit_status = serve(*arguments); });
}

}  // namespace rooflined::simulator
