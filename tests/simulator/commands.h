// The subcommands of `rooflined-sim`, one file each. Each adds itself to the command line; when it was chosen, its
// callback runs it and stores the exit status: 0 done, 1 nothing completed, 2 bad input, 130 interrupted.

#pragma once

#include <string>

namespace CLI {
class App;
}

namespace rooflined::simulator {

struct CaptureRunOptions;

void add_serve_command(CLI::App& app, int& exit_status);
void add_load_command(CLI::App& app, int& exit_status);
void add_slo_command(CLI::App& app, int& exit_status);
void add_make_model_command(CLI::App& app, int& exit_status);

// `serve --pcap`: writes the capture file, and the truth to stdout. The exit status.
int write_capture(const CaptureRunOptions& options, const std::string& path);

}  // namespace rooflined::simulator
