// The subcommands of the workbench: what people do with models before they deploy them. As in commands.h, each adds
// itself to the command line.

#pragma once

namespace CLI {
class App;
}

namespace rooflined::daemon {

void add_bench_command(CLI::App& app, int& exit_status);
void add_report_command(CLI::App& app, int& exit_status);
void add_fit_command(CLI::App& app, int& exit_status);
void add_advise_command(CLI::App& app, int& exit_status);

}  // namespace rooflined::daemon
