#include "daemon/bench_document.h"

#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <stdexcept>
#include <utility>

namespace rooflined::daemon {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kModelsMax = 1000;
constexpr std::size_t kRunsMax = 10000;
constexpr std::size_t kTextsMax = 1000;
constexpr std::size_t kTextBytesMax = 1024;
// Bytes and rates; their products and quotients stay finite.
constexpr double kNumberMin = 1e-9;
constexpr double kNumberMax = 1e18;

template <typename T>
Json nullable(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string_view source_name(CeilingSource source) {
  return source == CeilingSource::kMeasured ? "measured" : "supplied";
}

Json run_json(const BenchRun& run) {
  return {{"threads", run.threads},
          {"depth", run.depth},
          {"decode_tokens_per_second", nullable(run.decode)},
          {"decode_deviation", nullable(run.decode_deviation)},
          {"prefill_tokens_per_second", nullable(run.prefill)},
          {"prefill_deviation", nullable(run.prefill_deviation)}};
}

Json model_json(const BenchModel& model) {
  Json json = {{"name", model.name},
               {"path", model.path},
               {"mixture_of_experts", model.moe},
               {"offloaded", model.offloaded},
               {"bytes_per_token", nullable(model.bytes)},
               {"bytes_source", model.bytes ? Json(model.bytes_source) : Json(nullptr)},
               {"kv", Json::array()},
               {"runs", Json::array()},
               {"failures", model.failures}};
  for (const DepthBytes& one : model.kv)
    json["kv"].push_back({{"depth", one.depth}, {"bytes", one.kv_bytes > 0 ? Json(one.kv_bytes) : Json(nullptr)}});
  for (const BenchRun& run : model.runs) json["runs"].push_back(run_json(run));
  return json;
}

Json spread_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"min", spread->min}, {"median", spread->median}, {"max", spread->max}};
}

Json figures_json(const ModelFigures& figures, const BenchModel& model) {
  const SweepResult& sweep = figures.sweep;
  const auto& prefill = sweep.best_prefill;
  Json json = {{"name", model.name},
               {"in_fit", model.comparable() && figures.bytes.has_value()},
               {"threads", sweep.best_decode ? Json(sweep.best_decode->threads) : Json(nullptr)},
               {"decode_tokens_per_second", figures.decode},
               {"decode_deviation", nullable(figures.decode_deviation)},
               {"bytes_per_token", nullable(figures.bytes)},
               {"achieved_bytes_per_second", nullable(figures.achieved)},
               {"utilisation", nullable(figures.utilisation)},
               {"at_or_above_ceiling", figures.utilisation ? Json(*figures.utilisation > 1) : Json(nullptr)},
               {"tokens_per_second_bound", nullable(figures.bound)},
               {"knee_threads", nullable(sweep.knee)},
               {"loss_at_most_threads", nullable(sweep.loss_at_most_threads)},
               {"prefill_tokens_per_second", prefill ? nullable(prefill->prefill) : Json(nullptr)},
               {"prefill_threads", prefill ? Json(prefill->threads) : Json(nullptr)},
               {"prefill_scaling", nullable(sweep.prefill_scaling)},
               {"depths", Json::array()}};
  for (const DepthFigures& one : figures.depths) {
    json["depths"].push_back({{"depth", one.depth},
                              {"threads", one.threads},
                              {"decode_tokens_per_second", one.decode},
                              {"of_first", nullable(one.of_first)},
                              {"kv_bytes", nullable(one.kv_bytes)},
                              {"of_first_by_bytes", nullable(one.of_first_by_bytes)},
                              {"achieved_bytes_per_second", nullable(one.achieved)}});
  }
  return json;
}

// The next three throw what nlohmann throws, or std::invalid_argument; parse_bench_document() catches.
std::optional<double> number_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  const double value = found->get<double>();
  if (!(value >= kNumberMin && value <= kNumberMax))
    throw std::invalid_argument(fmt::format("{} is out of range", key));
  return value;
}

unsigned count_at(const Json& json, const char* key, double least) {
  const double value = json.at(key).get<double>();
  if (!(value >= least && value <= 1e9) || value != std::floor(value)) {
    throw std::invalid_argument(fmt::format("{} is not a whole number from {} to 1000000000", key, least));
  }
  return static_cast<unsigned>(value);
}

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? "" : to_label(found->get<std::string>(), kTextBytesMax);
}

std::vector<std::string> texts_at(const Json& json, const char* key) {
  std::vector<std::string> texts;
  const auto found = json.find(key);
  if (found == json.end()) return texts;
  for (const Json& text : *found) {
    if (texts.size() == kTextsMax) break;
    texts.push_back(to_label(text.get<std::string>(), kTextBytesMax));
  }
  return texts;
}

BenchRun parse_run(const Json& json) {
  BenchRun run;
  run.threads = count_at(json, "threads", 0);
  run.depth = count_at(json, "depth", 0);
  run.decode = number_at(json, "decode_tokens_per_second");
  run.decode_deviation = number_at(json, "decode_deviation");
  run.prefill = number_at(json, "prefill_tokens_per_second");
  run.prefill_deviation = number_at(json, "prefill_deviation");
  return run;
}

BenchModel parse_model(const Json& json) {
  BenchModel model;
  model.name = text_at(json, "name");
  model.path = text_at(json, "path");
  model.moe = json.value("mixture_of_experts", false);
  model.offloaded = json.value("offloaded", false);
  model.bytes = number_at(json, "bytes_per_token");
  model.bytes_source = text_at(json, "bytes_source");
  model.failures = texts_at(json, "failures");
  for (const Json& one : json.value("kv", Json::array())) {
    if (model.kv.size() == kRunsMax) throw std::invalid_argument("too many depths");
    model.kv.push_back({count_at(one, "depth", 0), number_at(one, "bytes").value_or(0)});
  }
  for (const Json& run : json.at("runs")) {
    if (model.runs.size() == kRunsMax) throw std::invalid_argument("too many runs");
    model.runs.push_back(parse_run(run));
  }
  return model;
}

BenchDocument parse_document(Json json) {
  BenchDocument document;
  BenchInput& input = document.input;
  const Json version = json.value("schema_version", Json(nullptr));
  input.notes = texts_at(json, "notes");
  if (version != kBenchSchemaVersion) {
    input.notes.push_back(
        fmt::format("schema_version is {}, not {}: read as far as it goes", version.dump(), kBenchSchemaVersion));
  }
  if (const auto ceiling = json.find("ceiling"); ceiling != json.end() && !ceiling->is_null()) {
    input.ceiling = number_at(*ceiling, "bytes_per_second");
    if (input.ceiling) {
      input.ceiling_source =
          text_at(*ceiling, "source") == "measured" ? CeilingSource::kMeasured : CeilingSource::kSupplied;
    }
    if (const auto llc = number_at(*ceiling, "llc_bytes"); llc && *llc < 1e18) input.llc = static_cast<Bytes>(*llc);
  }
  for (const Json& model : json.at("models")) {
    if (input.models.size() == kModelsMax) throw std::invalid_argument("too many models");
    input.models.push_back(parse_model(model));
  }
  for (const char* key : {"notes", "ceiling", "models", "analysis"}) json.erase(key);
  document.head = std::move(json);
  return document;
}

}  // namespace

Json to_json(const BenchAnalysis& analysis, const BenchInput& input) {
  Json json = {{"models_measured", analysis.models.size()},
               {"fit", nullptr},
               {"utilisation", spread_json(analysis.utilisation)},
               {"verdict", nullable(analysis.verdict)},
               {"frontier", nullptr},
               {"knee_threads", nullable(analysis.knee)},
               {"prefill_scaling", spread_json(analysis.prefill_scaling)},
               {"models", Json::array()},
               {"warnings", analysis.warnings}};
  if (analysis.fit) {
    json["fit"] = {{"bandwidth_bytes_per_second", analysis.fit->bandwidth},
                   {"r_squared", nullable(analysis.fit->r_squared)},
                   {"points", analysis.fit->points},
                   {"of_ceiling", input.ceiling ? Json(analysis.fit->bandwidth / *input.ceiling) : Json(nullptr)}};
  }
  if (analysis.frontier) {
    json["frontier"] = {{"size_ratio", analysis.frontier->size_ratio}, {"speed_ratio", analysis.frontier->speed_ratio}};
  }
  for (const ModelFigures& figures : analysis.models) {
    json["models"].push_back(figures_json(figures, input.models[figures.model]));
  }
  return json;
}

Json to_json(const BenchDocument& document) {
  const BenchInput& input = document.input;
  Json json = document.head;
  json["ceiling"] = nullptr;
  if (input.ceiling || input.llc) {
    json["ceiling"] = {{"bytes_per_second", nullable(input.ceiling)},
                       {"source", input.ceiling ? Json(source_name(input.ceiling_source)) : Json(nullptr)},
                       {"llc_bytes", nullable(input.llc)}};
  }
  json["notes"] = input.notes;
  json["models"] = Json::array();
  for (const BenchModel& model : input.models) json["models"].push_back(model_json(model));
  json["analysis"] = to_json(analyse_bench(input), input);
  return json;
}

Result<BenchDocument> parse_bench_document(std::string_view text, const std::string& where) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("models")) {
    return Error{ErrorCode::kInvalid, where, "not a file of rooflined bench (a JSON object with models was expected)"};
  }
  try {
    return parse_document(std::move(json));
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInvalid, where, to_label(error.what(), kTextBytesMax)};
  }
}

std::string utc_text(std::int64_t seconds_since_epoch) {
  const std::time_t seconds = seconds_since_epoch;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace rooflined::daemon
