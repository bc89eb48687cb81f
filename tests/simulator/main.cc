// rooflined-sim: a simulated inference server, and the clients that load a real or a simulated one.

#include "tests/simulator/commands.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
  using namespace rooflined::simulator;
  std::signal(SIGPIPE, SIG_IGN);
  int exit_status = 0;
  try {
    CLI::App app("Simulates an inference server whose speed is bound by memory bandwidth, and loads such servers.",
                 "rooflined-sim");
    app.set_version_flag("--version", std::string("rooflined-sim ") + ROOFLINED_VERSION);
    app.require_subcommand(1);
    add_serve_command(app, exit_status);
    add_load_command(app, exit_status);
    add_slo_command(app, exit_status);
    add_make_model_command(app, exit_status);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
      std::fprintf(stderr, "rooflined-sim: %s (see rooflined-sim --help)\n", error.what());
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rooflined-sim: %s\n", error.what());
    return 2;
  }
  return exit_status;
}
