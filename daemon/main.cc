// rooflined: one binary, its subcommands on the command line.

#include "daemon/commands.h"
#include "daemon/logging.h"
#include "daemon/workbench_commands.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
  using namespace rooflined::daemon;
  start_logging(rooflined::log::Level::kWarning);
  int exit_status = 0;
  try {
    CLI::App app("Measures how much of a node's memory bandwidth LLM token generation uses (MBU).", "rooflined");
    app.set_version_flag("--version", std::string("rooflined ") + ROOFLINED_VERSION);
    app.require_subcommand(0, 1);
    add_run_command(app, exit_status);
    add_replay_command(app, exit_status);
    add_membw_command(app, exit_status);
    add_inspect_command(app, exit_status);
    add_mark_deploy_command(app, exit_status);
    add_check_config_command(app, exit_status);
    add_doctor_command(app, exit_status);
    add_bench_command(app, exit_status);
    add_report_command(app, exit_status);
    add_fit_command(app, exit_status);
    add_advise_command(app, exit_status);
    try {
      app.parse(argc, argv);
      if (app.get_subcommands().empty()) {
        std::fprintf(
            stderr,
            "rooflined: a command is needed, such as run, replay, membw, inspect or bench (see rooflined --help)\n");
        return 2;
      }
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
      std::fprintf(stderr, "rooflined: %s (see rooflined --help)\n", error.what());
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rooflined: %s\n", error.what());
    return 2;
  }
  return exit_status;
}
