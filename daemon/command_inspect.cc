// rooflined inspect MODEL: what a model file is, and what a decode pass reads of it.

#include "collectors/model/model_reader.h"
#include "daemon/commands.h"
#include "daemon/inspect_report.h"
#include "daemon/number_option.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rooflined::daemon {
namespace {

struct Arguments {
  std::vector<std::string> paths;
  std::string kv_cache_type = "f16";
  double bandwidth = 0;
  InspectOptions options;
  bool json = false;
};

int failed(const Error& error) {
  std::fputs(fmt::format("rooflined inspect: {}\n", error.message()).c_str(), stderr);
  return 2;
}

// One model is its object; several are a list of them.
void print(const Arguments& arguments, const std::vector<model::ModelFile>& models) {
  nlohmann::ordered_json json;
  for (std::size_t at = 0; at < models.size(); ++at) {
    nlohmann::ordered_json one = inspect_json(models[at], arguments.options);
    if (models.size() == 1) {
      json = std::move(one);
    } else {
      one["path"] = arguments.paths[at];
      json["models"].push_back(std::move(one));
    }
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::vector<std::string> file_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const std::filesystem::path each = std::filesystem::path(path).lexically_normal();
    names.push_back(to_label((each.has_filename() ? each : each.parent_path()).filename().string(), 40));
  }
  return names;
}

int inspect(Arguments arguments) {
  const Result<model::KvCacheTypes> types = model::parse_kv_cache_types(arguments.kv_cache_type);
  if (!types) return failed(types.error());
  arguments.options.kv_cache_types = *types;
  if (arguments.bandwidth > 0) arguments.options.bandwidth = arguments.bandwidth;
  std::vector<model::ModelFile> models;
  for (const std::string& path : arguments.paths) {
    Result<model::ModelFile> model = model::read_model(path);
    if (!model) return failed(model.error());
    models.push_back(std::move(*model));
  }
  if (arguments.json) {
    print(arguments, models);
  } else if (models.size() == 1) {
    fmt::print("{}", inspect_table(models.front(), arguments.options));
  } else {
    fmt::print("{}", inspect_comparison(file_names(arguments.paths), models, arguments.options));
  }
  return 0;
}

}  // namespace

void add_inspect_command(CLI::App& app, int& exit_status) {
  // Shared with the callback, which CLI11 copies.
  auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("inspect", "Show what a model file is and what a decode pass reads of it");
  command->add_option("MODEL", arguments->paths, "A GGUF file, any shard of it; a Hugging Face folder; a config.json")
      ->required();
  command->add_option("--batch", arguments->options.batch, "Sequences in a pass (default 1)")
      ->check(number_between(1, 1e6));
  command->add_option("--context", arguments->options.context, "Tokens of context that a sequence reads (default 4096)")
      ->check(number_between(0, 1e9));
  command->add_option("--kv-cache-type", arguments->kv_cache_type,
                      fmt::format("Type of the KV cache, or of K,V (default f16): {}", model::kKvCacheTypeNames));
  command
      ->add_option("--bandwidth", arguments->bandwidth,
                   "Bytes per second of the memory: shows the tokens per second that it allows")
      ->check(number_between(1, 1e16));
  command->add_flag("--json", arguments->json, "One JSON object on stdout");
  command->callback([arguments, &exit_status] { exit_status = inspect(*arguments); });
}

}  // namespace rooflined::daemon
