// rooflined-sim serve: the simulated engine behind an HTTP port, until a signal.

#include "tests/simulator/commands.h"
#include "tests/simulator/option_units.h"
#include "tests/simulator/server.h"

#include <fmt/format.h>

#include <pthread.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace rooflined::simulator {
namespace {

struct ServeArguments {
  std::string listen;
  std::string model;
  std::string kv_cache_type = "f16";
  std::string routing = "expected";
  ServerOptions options;
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

int serve(ServeArguments& arguments) {
  const auto listen = parse_listen(arguments.listen);
  if (!listen) return fail({ErrorCode::kInvalid, "--listen " + arguments.listen, "HOST:PORT is needed"});
  auto model = load_model(arguments.model, arguments.kv_cache_type);
  if (!model) return fail({model.error().code, "--model", model.error().message()});
  arguments.options.model = std::move(*model);
  arguments.options.engine.geometry = arguments.options.model.geometry;
  arguments.options.engine.routing = arguments.routing == "random" ? Routing::kRandom : Routing::kExpected;

  // Every thread inherits the mask, so that only sigwait() below sees these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  Server server(arguments.options);
  const auto port = server.bind(listen->host, listen->port);
  if (!port) return fail(port.error());
  fmt::print(stderr, "rooflined-sim: serving {} on http://{}:{}\n", arguments.options.model.name,
             arguments.listen.substr(0, arguments.listen.rfind(':')), *port);
  std::thread accepting([&server] { server.run(); });
  int signal = 0;
  sigwait(&signals, &signal);
  server.stop();
  accepting.join();
  return signal == SIGINT ? 130 : 0;
}

}  // namespace

void add_serve_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("serve", "An OpenAI-compatible server with a simulated engine");
  auto arguments = std::make_shared<ServeArguments>();
  EngineOptions& engine = arguments->options.engine;
  command->add_option("--listen", arguments->listen, "HOST:PORT; port 0 takes a free one")->required();
  command
      ->add_option("--model", arguments->model,
                   "A GGUF file, or builtin:NAME: " + fmt::format("{}", fmt::join(preset_names(), ", ")))
      ->required();
  command->add_option("--bandwidth", engine.bandwidth, "Bytes per second of the simulated memory: 50e9, 50GB")
      ->required()
      ->transform(bytes_unit())
      ->check(above_zero());
  command->add_option("--efficiency", engine.efficiency, "Share of the bandwidth that a decode pass reaches, up to 1")
      ->required()
      ->check(above_zero())
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--max-batch", engine.batch_max, "Sequences at a time")
      ->check(CLI::Range(std::size_t{1}, std::size_t{65536}))
      ->capture_default_str();
  command->add_option("--prefill-rate", engine.prefill_tokens_per_second, "Prompt tokens per second; 0 is free")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--overhead", engine.overhead_seconds, "Of each step: 2ms")
      ->transform(duration_unit())
      ->check(zero_or_more());
  command->add_option("--draft-tokens", engine.draft_tokens, "Speculative decoding: drafts that a pass verifies")
      ->check(CLI::Range(0, 64));
  command->add_option("--acceptance", engine.acceptance, "Of each draft")->check(CLI::Range(0.0, 1.0));
  command->add_option("--dialect", arguments->options.dialect, "Whose frames")
      ->check(CLI::IsMember(dialect_names()))
      ->capture_default_str();
  command->add_option("--kv-cache-type", arguments->kv_cache_type, "T, or K,V")->capture_default_str();
  command->add_option("--routing", arguments->routing, "How many experts a pass reads: as expected, or drawn")
      ->check(CLI::IsMember({"expected", "random"}))
      ->capture_default_str();
  command->add_option("--seed", engine.seed, "Of what is drawn")->capture_default_str();
  command->callback([arguments, &exit_status] { exit_status = serve(*arguments); });
}

}  // namespace rooflined::simulator
