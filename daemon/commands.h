// The subcommands of `rooflined`, one file each. Each adds itself to the command line; when it was chosen, its callback
// runs it and stores the exit status: 0 done, 1 ran but found or measured nothing, 2 bad input, 130 interrupted.

#pragma once

namespace CLI {
class App;
}

namespace rooflined::daemon {

void add_run_command(CLI::App& app, int& exit_status);
void add_replay_command(CLI::App& app, int& exit_status);
void add_membw_command(CLI::App& app, int& exit_status);
void add_inspect_command(CLI::App& app, int& exit_status);
void add_mark_deploy_command(CLI::App& app, int& exit_status);
void add_check_config_command(CLI::App& app, int& exit_status);
void add_doctor_command(CLI::App& app, int& exit_status);

}  // namespace rooflined::daemon
