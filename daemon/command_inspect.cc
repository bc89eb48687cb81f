// rooflined inspect MODEL: what a model file is, and what a decode pass reads of it.

#include "collectors/model/model_reader.h"
#include "daemon/commands.h"
#include "daemon/inspect_report.h"
#include "daemon/number_option.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <string>

namespace rooflined::daemon {
namespace {

struct Arguments {
  std::string path;
  std::string kv_cache_type = "f16";
  InspectOptions options;
  bool json = false;
};

int failed(const Error& error) {
  std::fputs(fmt::format("rooflined inspect: {}\n", error.message()).c_str(), stderr);
  return 2;
}

int inspect(Arguments arguments) {
  const Result<model::KvCacheTypes> types = model::parse_kv_cache_types(arguments.kv_cache_type);
  if (!types) return failed(types.error());
  arguments.options.kv_cache_types = *types;
  const Result<model::ModelFile> model = model::read_model(arguments.path);
  if (!model) return failed(model.error());
  if (arguments.json) {
    const nlohmann::ordered_json json = inspect_json(*model, arguments.options);
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    fmt::print("{}", inspect_table(*model, arguments.options));
  }
  return 0;
}

}  // namespace

void add_inspect_command(CLI::App& app, int& exit_status) {
  // Shared with the callback, which CLI11 copies.
  auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("inspect", "Show what a model file is and what a decode pass reads of it");
  command->add_option("MODEL", arguments->path, "A GGUF file, any shard of it")->required();
  command->add_option("--batch", arguments->options.batch, "Sequences in a pass (default 1)")
      ->check(number_between(1, 1e6));
  command->add_option("--context", arguments->options.context, "Tokens of context that a sequence reads (default 4096)")
      ->check(number_between(0, 1e9));
  command->add_option("--kv-cache-type", arguments->kv_cache_type,
                      fmt::format("Type of the KV cache, or of K,V (default f16): {}", model::kKvCacheTypeNames));
  command->add_flag("--json", arguments->json, "One JSON object on stdout");
  command->callback([arguments, &exit_status] { exit_status = inspect(*arguments); });
}

}  // namespace rooflined::daemon
