// rooflined-sim make-model: a model file without weights, for the simulated server and whoever looks for its model.

#include "tests/simulator/commands.h"
#include "tests/simulator/model.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace rooflined::simulator {
namespace {

struct MakeModelArguments {
  std::string file;
  std::string preset = "dense";
};

int make_model(const MakeModelArguments& arguments) {
  std::string preset = arguments.preset;
  if (preset == "dense") preset = "llama-3.2-1b-q8_0";
  if (preset == "moe") preset = "moe-small";
  const Status written = write_model(preset, arguments.file);
  if (written) return 0;
  fmt::print(stderr, "rooflined-sim: {}\n", written.error().message());
  return 2;
}

}  // namespace

void add_make_model_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("make-model", "Writes a GGUF file of full size whose weights are a hole");
  auto arguments = std::make_shared<MakeModelArguments>();
  command->add_option("FILE", arguments->file, "Replaced where it exists")->required();
  command
      ->add_option("--preset", arguments->preset,
                   fmt::format("dense, moe, or one of {}", fmt::join(preset_names(), ", ")))
      ->capture_default_str();
  command->callback([arguments, &exit_status] { exit_status = make_model(*arguments); });
}

}  // namespace rooflined::simulator
