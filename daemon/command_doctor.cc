// rooflined doctor: one screen that says what works, what does not, and what mends it.

#include "daemon/commands.h"
#include "daemon/doctor.h"
#include "daemon/doctor_facts.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace rooflined::daemon {
namespace {

struct DoctorArguments {
  DoctorOptions options;
  bool json = false;
};

void print_json(const std::vector<Finding>& findings) {
  nlohmann::json object = {{"ok", true}, {"findings", nlohmann::json::array()}};
  for (const Finding& finding : findings) {
    if (finding.health == Health::kBroken) object["ok"] = false;
    object["findings"].push_back({{"health", health_name(finding.health)},
                                  {"topic", finding.topic},
                                  {"text", finding.text},
                                  {"fix", finding.fix}});
  }
  std::puts(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print_table(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    fmt::print("{:<7} {:<12} {}\n", health_name(finding.health), finding.topic, finding.text);
    for (const std::string& line : finding.fix) fmt::print("{:<7}   {}\n", "", line);
  }
}

int doctor(const DoctorArguments& arguments) {
  GatheredFacts gathered;
  gather(arguments.options, gathered);
  const std::vector<Finding> findings = diagnose(gathered.facts);
  if (arguments.json) {
    print_json(findings);
  } else {
    print_table(findings);
  }
  if (!gathered.facts.settings_errors.empty()) return 2;
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.health == Health::kBroken; })
             ? 1
             : 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* command = app.add_subcommand("doctor", "Say what works here, what does not, and what mends it");
  auto* settings = command->add_option("--config", arguments->options.settings_path, "settings file of the daemon")
                       ->capture_default_str();
  command->add_option("--user", arguments->options.user, "user that the daemon runs as")->capture_default_str();
  command->add_flag("--json", arguments->json, "print one JSON object on stdout");
  command->callback([arguments, settings, &exit_status] {
    arguments->options.settings_named = settings->count() > 0;
    exit_status = doctor(*arguments);
  });
}

}  // namespace rooflined::daemon
