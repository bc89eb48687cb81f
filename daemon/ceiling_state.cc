#include "daemon/ceiling_state.h"

#include "daemon/measurement_json.h"
#include "daemon/state_file.h"
#include "metrics/base/log.h"
#include "metrics/base/utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace rooflined::daemon {
namespace {

using Json = nlohmann::ordered_json;
using ceiling::CacheProbe;
using ceiling::ConfirmedResult;
using ceiling::ObservedRate;
using ceiling::Outcome;

constexpr int kVersion = 1;
// Twelve kernels with five thread counts and a hundred repetitions of 20 characters are 120 kB.
constexpr std::size_t kFileBytesMax = std::size_t{1024} * 1024;
// Another writer holds the lock for as long as an fsync takes.
constexpr Duration kLockPatience = std::chrono::seconds(5);
constexpr std::size_t kNodesMax = 1024;

Json to_json(const ConfirmedResult& result) {
  Json json = {{"unix_time_ns", result.measured_at.ns()},
               {"ceiling_bytes_per_second", result.ceiling},
               {"median_bytes_per_second", result.median},
               {"kernel", result.kernel},
               {"threads", result.threads},
               {"working_set_bytes", result.working_set},
               {"cache_inflated", result.cache_inflated}};
  for (const ceiling::NodeResult& node : result.nodes) {
    json["nodes"].push_back(
        {{"node", node.node}, {"best_bytes_per_second", node.best}, {"median_bytes_per_second", node.median}});
  }
  return json;
}

Json to_json(const CacheProbe& probe) {
  return {{"unix_time_ns", probe.measured_at.ns()},
          {"working_set_bytes", probe.working_set},
          {"ceiling_bytes_per_second", probe.ceiling}};
}

Json to_json(const ObservedRate::Kept& observed) {
  return {{"seconds_without_idle", to_seconds(observed.without_idle)}, {"bytes_per_second", observed.highest}};
}

template <typename Range>
Json array_of(const Range& items) {
  Json json = Json::array();
  for (const auto& item : items) json.push_back(to_json(item));
  return json;
}

// From a megabyte to a petabyte per second.
bool possible(BytesPerSecond rate) {
  return rate >= 1e6 && rate <= 1e15;
}

bool possible(WallTime measured_at, BytesPerSecond rate) {
  constexpr WallTime kMeasuredMax = WallTime::from_ns(4'102'444'800'000'000'000);  // 2100-01-01
  return possible(rate) && measured_at.ns() > 0 && measured_at < kMeasuredMax;
}

bool possible(const ConfirmedResult& result) {
  constexpr unsigned kThreadsMax = 1 << 16;
  return possible(result.measured_at, result.ceiling) && result.median > 0 && result.median <= result.ceiling &&
         result.threads > 0 && result.threads <= kThreadsMax;
}

// The readers below throw what nlohmann throws; parse_ceiling_state() catches.

WallTime time_from_json(const Json& json) {
  return WallTime::from_ns(json.at("unix_time_ns").get<std::int64_t>());
}

ConfirmedResult result_from_json(const Json& json) {
  ConfirmedResult result;
  result.measured_at = time_from_json(json);
  result.ceiling = json.at("ceiling_bytes_per_second").get<double>();
  result.median = json.at("median_bytes_per_second").get<double>();
  result.kernel = to_label(json.at("kernel").get<std::string>());
  result.threads = json.at("threads").get<unsigned>();
  result.working_set = json.at("working_set_bytes").get<Bytes>();
  result.cache_inflated = json.at("cache_inflated").get<bool>();
  for (const Json& item : json.value("nodes", Json::array())) {
    const ceiling::NodeResult node = {item.at("node").get<int>(), item.at("best_bytes_per_second").get<double>(),
                                      item.at("median_bytes_per_second").get<double>(), true};
    if (possible(result.measured_at, node.best) && result.nodes.size() < kNodesMax) result.nodes.push_back(node);
  }
  return result;
}

Json identity_to_json(const ceiling::MachineIdentity& identity) {
  return {{"cpu_model", identity.cpu_model},
          {"kernel_release", identity.kernel_release},
          {"memory_bytes", identity.memory_bytes},
          {"llc_bytes", identity.llc_bytes}};
}

ceiling::MachineIdentity identity_from_json(const Json& json) {
  ceiling::MachineIdentity identity;
  identity.cpu_model = json.at("cpu_model").get<std::string>();
  identity.kernel_release = json.at("kernel_release").get<std::string>();
  identity.memory_bytes = json.at("memory_bytes").get<Bytes>();
  identity.llc_bytes = json.at("llc_bytes").get<Bytes>();
  return identity;
}

// Nothing where it cannot be.
std::optional<ObservedRate::Kept> observed_from_json(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto seconds = json.at("seconds_without_idle").get<double>();
  const auto rate = json.at("bytes_per_second").get<double>();
  if (!(seconds >= 0 && seconds <= to_seconds(ObservedRate::kAfter)) || !possible(rate)) return std::nullopt;
  return ObservedRate::Kept{from_seconds(seconds), rate};
}

// What it lacks, or cannot be, costs only itself: it is shown, and nothing is computed from it.
std::optional<LastMeasurement> last_from_json(const Json& json) {
  if (!json.is_object() || !json.contains("unix_time_ns") || !json["unix_time_ns"].is_number_integer()) return {};
  auto measurement = measurement_from_json(json.value("measurement", Json()));
  if (!measurement.ok()) return std::nullopt;
  return LastMeasurement{time_from_json(json), std::move(measurement).value()};
}

Result<CeilingState> state_from_json(const Json& json) {
  if (json.at("version") != kVersion)
    return Error{ErrorCode::kUnsupported, "", "a version of the file that is not ours"};
  const Error impossible{ErrorCode::kInvalid, "", "a result that cannot be"};
  CeilingState state;
  state.identity = identity_from_json(json.at("identity"));
  for (const Json& item : json.at("results")) {
    ConfirmedResult result = result_from_json(item);
    if (!possible(result)) return impossible;
    state.history.restore(std::move(result));
  }
  for (const Json& item : json.value("suspects", Json::array())) {
    ConfirmedResult result = result_from_json(item);
    if (!possible(result)) return impossible;
    state.history.restore_suspect(std::move(result));
  }
  for (const Json& item : json.value("cache_probes", Json::array())) {
    const CacheProbe probe = {time_from_json(item), item.at("working_set_bytes").get<Bytes>(),
                              item.at("ceiling_bytes_per_second").get<double>()};
    if (!possible(probe.measured_at, probe.ceiling)) return impossible;
    state.cache_probes.add(probe);
  }
  state.observed = observed_from_json(json.value("observed", Json()));
  state.last = last_from_json(json.value("last", Json()));
  return state;
}

}  // namespace

Outcome CeilingState::take(const ceiling::Measurement& measurement, WallTime measured_at) {
  last = LastMeasurement{measured_at, measurement};
  if (!measurement.adoptable()) return Outcome::kUnstable;
  const auto judgement = history.take(ceiling::confirmed_result(measurement, measured_at));
  return judgement == ceiling::History::Judgement::kAdopted ? Outcome::kAdopted : Outcome::kSuspect;
}

Outcome CeilingState::take_cache_probe(Bytes working_set, const ceiling::Measurement& measurement,
                                       WallTime measured_at) {
  if (!measurement.holds()) return Outcome::kUnstable;
  cache_probes.add({measured_at, working_set, measurement.winner->best});
  return Outcome::kAdopted;
}

std::optional<Duration> CeilingState::age(WallTime now) const {
  constexpr Duration kFutureMax = std::chrono::hours(1);
  constexpr Duration kUnknownAge = std::chrono::hours(24 * 365);
  if (history.empty()) return std::nullopt;
  const Duration since = now - history.results().back().measured_at;
  return since < -kFutureMax ? kUnknownAge : std::max(Duration(0), since);
}

std::string ceiling_state_path(const std::string& directory) {
  return directory + "/ceiling.json";
}

std::string ceiling_state_text(const CeilingState& state) {
  Json json = {{"version", kVersion},
               {"identity", identity_to_json(state.identity)},
               // For people and scripts; loading takes it from the results.
               {"adopted", nullptr},
               {"results", array_of(state.history.results())},
               {"suspects", array_of(state.history.suspects())},
               {"cache_probes", array_of(state.cache_probes.all())},
               {"observed", state.observed ? to_json(*state.observed) : Json()},
               {"last", nullptr}};
  if (const ConfirmedResult* const adopted = state.history.adopted()) json["adopted"] = to_json(*adopted);
  if (state.last) {
    json["last"] = {{"unix_time_ns", state.last->measured_at.ns()}, {"measurement", to_json(state.last->measurement)}};
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CeilingState> parse_ceiling_state(std::string_view text) {
  if (text.size() > kFileBytesMax) return Error{ErrorCode::kLimit, "", "larger than any state of ours"};
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{ErrorCode::kInvalid, "", "not a JSON object"};
  try {
    return state_from_json(json);
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kInvalid, "", error.what()};
  }
}

CeilingState load_ceiling_state(const std::string& directory, const ceiling::MachineIdentity& identity) {
  CeilingState fresh;
  fresh.identity = identity;
  const std::string path = ceiling_state_path(directory);
  const auto text = read_file(path, kFileBytesMax);
  if (!text.ok()) {
    if (text.error().code != ErrorCode::kNotFound)
      log::warning("{}: the ceiling is measured afresh", text.error().message());
    return fresh;
  }
  auto state = parse_ceiling_state(*text);
  if (!state.ok()) {
    log::warning("{}: {}: the ceiling is measured afresh", path, state.error().message());
    return fresh;
  }
  if (!ceiling::same_machine(state->identity, identity)) {
    log::info("{}: of another machine, or of this one before it changed: the ceiling is measured afresh", path);
    return fresh;
  }
  state->identity = identity;
  return std::move(state).value();
}

CeilingUpdate update_ceiling_state(const std::string& directory, const CeilingState& held,
                                   const std::function<void(CeilingState&)>& change) {
  const auto lock = FileLock::take(directory + "/ceiling.lock", kLockPatience);
  CeilingState state = load_ceiling_state(directory, held.identity);
  if (state.history.empty()) state = held;
  change(state);
  if (!lock.ok()) return CeilingUpdate{std::move(state), lock.error()};
  Status saved = replace_file(ceiling_state_path(directory), ceiling_state_text(state));
  return CeilingUpdate{std::move(state), std::move(saved)};
}

}  // namespace rooflined::daemon
