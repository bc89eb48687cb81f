#include "daemon/measurement_json.h"

#include "collectors/ceiling/kernels.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace rooflined::daemon {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json nullable(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json cell_to_json(const ceiling::MeasuredCell& cell) {
  return {{"kernel", cell.kernel},
          {"threads", cell.threads},
          {"best_bytes_per_second", cell.best},
          {"median_bytes_per_second", cell.median},
          {"stable", cell.stable},
          {"samples", cell.samples}};
}

// Throws what nlohmann throws; measurement_from_json() catches.
ceiling::MeasuredCell cell_from_json(const Json& json) {
  ceiling::MeasuredCell cell;
  cell.kernel = json.at("kernel").get<std::string>();
  cell.threads = json.at("threads").get<unsigned>();
  cell.best = json.at("best_bytes_per_second").get<double>();
  cell.median = json.at("median_bytes_per_second").get<double>();
  cell.stable = json.at("stable").get<bool>();
  cell.samples = json.at("samples").get<std::vector<double>>();
  return cell;
}

template <typename T>
std::optional<T> optional_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (value.is_null()) return std::nullopt;
  return value.get<T>();
}

Json surroundings_to_json(const ceiling::Surroundings& seen) {
  return {{"steal_share", seen.steal_share},
          {"others_cpus", seen.others_cpus},
          {"cpu_pressure_share", nullable(seen.cpu_pressure_share)},
          {"throttled_periods", seen.throttled_periods},
          {"reclaim_events", seen.reclaim_events}};
}

ceiling::Surroundings surroundings_from_json(const Json& json) {
  ceiling::Surroundings seen;
  seen.steal_share = json.at("steal_share").get<double>();
  seen.others_cpus = json.at("others_cpus").get<double>();
  seen.cpu_pressure_share = optional_at<double>(json, "cpu_pressure_share");
  seen.throttled_periods = json.at("throttled_periods").get<std::uint64_t>();
  seen.reclaim_events = json.at("reclaim_events").get<std::uint64_t>();
  return seen;
}

Json node_to_json(const ceiling::NodeResult& node) {
  return {{"node", node.node},
          {"best_bytes_per_second", node.best},
          {"median_bytes_per_second", node.median},
          {"stable", node.stable}};
}

ceiling::NodeResult node_from_json(const Json& json) {
  return {json.at("node").get<int>(), json.at("best_bytes_per_second").get<double>(),
          json.at("median_bytes_per_second").get<double>(), json.at("stable").get<bool>()};
}

ceiling::Verdict verdict_from_name(const std::string& name) {
  using enum ceiling::Verdict;
  for (const ceiling::Verdict verdict : {kConfirmed, kUnstable, kThrottled, kContended, kCacheResident}) {
    if (ceiling::verdict_name(verdict) == name) return verdict;
  }
  return kUnstable;
}

ceiling::Measurement parse_measurement(const Json& json) {
  ceiling::Measurement measurement;
  if (!json.at("confirmation").is_null()) measurement.winner = cell_from_json(json.at("confirmation"));
  measurement.verdict = verdict_from_name(json.at("verdict").get<std::string>());
  measurement.working_set = json.at("working_set_bytes").get<Bytes>();
  measurement.llc = optional_at<Bytes>(json, "llc_bytes");
  measurement.cache_inflated = json.at("cache_inflated").get<bool>();
  measurement.huge_page_bytes = json.at("huge_page_bytes").get<Bytes>();
  measurement.repetitions = json.at("repetitions").get<unsigned>();
  measurement.instruction_set = json.at("instruction_set").get<std::string>();
  measurement.copy = optional_at<double>(json, "copy_bytes_per_second");
  measurement.surroundings = surroundings_from_json(json.at("surroundings"));
  for (const Json& node : json.at("nodes")) measurement.nodes.push_back(node_from_json(node));
  measurement.duration_seconds = json.at("duration_seconds").get<double>();
  measurement.warnings = json.at("warnings").get<std::vector<std::string>>();
  for (const Json& cell : json.at("cells")) measurement.cells.push_back(cell_from_json(cell));
  return measurement;
}

Error bad_report(std::string detail) {
  return Error{ErrorCode::kInvalid, "probe report", std::move(detail)};
}

}  // namespace

Json to_json(const ceiling::Measurement& measurement) {
  const auto& winner = measurement.winner;
  const bool holds = measurement.adoptable();
  Json json = {
      {"ceiling_bytes_per_second", holds ? Json(winner->best) : Json(nullptr)},
      {"kernel", winner ? Json(winner->kernel) : Json(nullptr)},
      {"threads", winner ? Json(winner->threads) : Json(nullptr)},
      {"stable", measurement.stable()},
      {"verdict", ceiling::verdict_name(measurement.verdict)},
      {"median_to_best", winner && winner->best > 0 ? Json(winner->median / winner->best) : Json(nullptr)},
      {"confirmed_median_bytes_per_second", holds ? Json(winner->median) : Json(nullptr)},
      {"working_set_bytes", measurement.working_set},
      {"llc_bytes", nullable(measurement.llc)},
      {"cache_inflated", measurement.cache_inflated},
      {"huge_pages", measurement.huge_pages()},
      {"huge_page_bytes", measurement.huge_page_bytes},
      {"repetitions", measurement.repetitions},
      {"instruction_set", measurement.instruction_set},
      {"copy_bytes_per_second", nullable(measurement.copy)},
      {"surroundings", surroundings_to_json(measurement.surroundings)},
      {"duration_seconds", measurement.duration_seconds},
      {"warnings", measurement.warnings},
      {"confirmation", winner ? cell_to_json(*winner) : Json(nullptr)},
      {"nodes", Json::array()},
      {"cells", Json::array()},
  };
  for (const auto& node : measurement.nodes) json["nodes"].push_back(node_to_json(node));
  for (const auto& cell : measurement.cells) json["cells"].push_back(cell_to_json(cell));
  return json;
}

Result<ceiling::Measurement> measurement_from_json(const Json& json) {
  try {
    return parse_measurement(json);
  } catch (const Json::exception& error) {
    return bad_report(error.what());
  }
}

std::string report_line(const ReportItem& item) {
  Json json;
  if (const auto* progress = std::get_if<ceiling::Progress>(&item)) {
    json["progress"] = {{"kernel", progress->kernel},
                        {"threads", progress->threads},
                        {"done", progress->done},
                        {"total", progress->total}};
  } else if (const auto* measurement = std::get_if<ceiling::Measurement>(&item)) {
    json["measurement"] = to_json(*measurement);
  } else {
    const Error& error = std::get<Error>(item);
    json["error"] = {{"code", static_cast<int>(error.code)}, {"where", error.where}, {"detail", error.detail}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

ReportItem parse_report_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return bad_report("not a JSON object");
  try {
    if (const auto found = json.find("progress"); found != json.end()) {
      ceiling::Progress progress;
      progress.kernel = found->at("kernel").get<std::size_t>();
      progress.threads = found->at("threads").get<unsigned>();
      progress.done = found->at("done").get<unsigned>();
      progress.total = found->at("total").get<unsigned>();
      if (progress.kernel >= ceiling::kKernels.size()) return bad_report("no such kernel");
      return progress;
    }
    if (const auto found = json.find("measurement"); found != json.end()) return parse_measurement(*found);
    if (const auto found = json.find("error"); found != json.end()) {
      const int code = found->at("code").get<int>();
      if (code < 0 || code > static_cast<int>(ErrorCode::kIo)) return bad_report("no such error code");
      return Error{static_cast<ErrorCode>(code), found->at("where").get<std::string>(),
                   found->at("detail").get<std::string>()};
    }
  } catch (const Json::exception& error) {
    return bad_report(error.what());
  }
  return bad_report("neither progress nor measurement nor error");
}

}  // namespace rooflined::daemon
