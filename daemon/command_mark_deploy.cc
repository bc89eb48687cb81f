// rooflined mark-deploy: tells the daemon of a deploy that it cannot see, or that a change is as it should be.

#include "config/reader.h"
#include "daemon/commands.h"
#include "daemon/local_socket.h"
#include "daemon/mark_request.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace rooflined::daemon {
namespace {

constexpr int kExitNothing = 1;
constexpr int kExitBadInput = 2;
constexpr const char* kRuntimeSocket = "/run/rooflined/control.sock";

struct MarkOptions {
  Mark mark;
  std::string config_path = "/etc/rooflined/rooflined.toml";
  bool config_named = false;
  std::string socket;
};

int fail(int status, const std::string& line) {
  std::fprintf(stderr, "rooflined mark-deploy: %s\n", line.c_str());
  return status;
}

// Where a daemon may listen: as told, else where the unit puts it, or in the state directory of the settings.
std::vector<std::string> places(const MarkOptions& options) {
  if (!options.socket.empty()) return {options.socket};
  const config::ConfigResult settings = config::read_config_file(options.config_path);
  const std::string in_state = settings.config.state.directory + "/control.sock";
  return options.config_named ? std::vector<std::string>{in_state, kRuntimeSocket}
                              : std::vector<std::string>{kRuntimeSocket, in_state};
}

Result<int> connect_to_daemon(const MarkOptions& options) {
  Error first{ErrorCode::kNotFound, "", ""};
  for (const std::string& path : places(options)) {
    auto connected = connect_locally(path);
    if (connected) return connected;
    // A socket that is there and refuses says more than one that is not there.
    if (first.where.empty() || first.code == ErrorCode::kNotFound) first = connected.error();
  }
  first.detail += ": is the daemon running, and may this user reach it (root, or a member of its group)?";
  return first;
}

int mark(const MarkOptions& options) {
  if (options.mark.accept && !options.mark.version.empty())
    return fail(kExitBadInput, "--accept is about the deploy that was, --version names a new one: give one of them");
  const auto connected = connect_to_daemon(options);
  if (!connected) return fail(kExitNothing, connected.error().message());
  // The daemon itself waits a second for its capture thread.
  const LocalConnection connection(*connected, std::chrono::seconds(5));
  if (const Status sent = connection.write_line(mark_line(options.mark)); !sent)
    return fail(kExitNothing, sent.error().message());
  const auto line = connection.read_line(kMarkLineBytesMax);
  if (!line) return fail(kExitNothing, line.error().message());
  const auto answer = parse_mark_answer(*line);
  if (!answer) return fail(kExitNothing, answer.error().message());
  if (!answer->error.empty()) return fail(kExitBadInput, answer->error);
  std::printf("target %s: deploy %llu %s\n", options.mark.target.c_str(),
              static_cast<unsigned long long>(answer->generation), options.mark.accept ? "is accepted" : "is marked");
  return 0;
}

}  // namespace

void add_mark_deploy_command(CLI::App& app, int& exit_status) {
  auto* command =
      app.add_subcommand("mark-deploy", "Tells the daemon of a deploy, or that a change is as it should be");
  auto options = std::make_shared<MarkOptions>();
  command->add_option("--target", options->mark.target, "the target, as in the label `target`")->required();
  command->add_option("--version", options->mark.version, "how the deploy is called");
  command->add_flag("--accept", options->mark.accept, "ends the comparison of the last deploy; no new one");
  auto* config =
      command->add_option("--config", options->config_path, "settings file of the daemon")->capture_default_str();
  command->add_option("--socket", options->socket, "control socket of the daemon, where it is not found by itself");
  command->callback([options, config, &exit_status] {
    options->config_named = config->count() > 0;
    exit_status = mark(*options);
  });
}

}  // namespace rooflined::daemon
