// rooflined check-config FILE: every fault of a settings file at once, on stderr, as file:line:column: message.

#include "config/reader.h"
#include "daemon/commands.h"
#include "daemon/exposure.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <string>

namespace rooflined::daemon {

namespace {

struct CheckConfigArguments {
  std::string file;
  bool json = false;
};

void print_json(const CheckConfigArguments& arguments, const config::ConfigResult& result) {
  nlohmann::json object = {{"file", arguments.file},
                           {"ok", result.ok()},
                           {"errors", nlohmann::json::array()},
                           {"warnings", nlohmann::json::array()}};
  if (const auto exposure = exposure_of(result.config.web); result.ok() && exposure) {
    object["warnings"].push_back(*exposure);
  }
  for (const config::ConfigError& error : result.errors) {
    object["errors"].push_back({{"line", error.line}, {"column", error.column}, {"message", error.message}});
  }
  // A file name need not be UTF-8.
  std::puts(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

int check_config(const CheckConfigArguments& arguments) {
  const config::ConfigResult result = config::read_config_file(arguments.file);
  for (const config::ConfigError& error : result.errors) {
    std::fprintf(stderr, "%s\n", error.text(arguments.file).c_str());
  }
  if (arguments.json) {
    print_json(arguments, result);
  } else if (result.ok()) {
    std::printf("%s: no faults\n", arguments.file.c_str());
    if (const auto exposure = exposure_of(result.config.web)) std::printf("but %s\n", exposure->c_str());
  }
  return result.ok() ? 0 : 2;
}

}  // namespace

void add_check_config_command(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<CheckConfigArguments>();
  CLI::App* command = app.add_subcommand("check-config", "Check a settings file and name every fault in it");
  command->add_option("FILE", arguments->file, "the settings file")->required();
  command->add_flag("--json", arguments->json, "print one JSON object on stdout");
  command->callback([arguments, &exit_status] { exit_status = check_config(*arguments); });
}

}  // namespace rooflined::daemon
