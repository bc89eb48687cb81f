#include "daemon/deploy_state.h"

#include "daemon/state_file.h"
#include "metrics/base/log.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace rooflined::daemon {
namespace {

using Json = nlohmann::ordered_json;
using server::Comparison;
using server::Deploy;
using server::DeployBaseline;
using server::DeployIdentity;
using server::DeployState;

constexpr int kVersion = 1;
// 32 targets with four lots of 2,000 slices of 35 characters are 9 MB.
constexpr std::size_t kFileBytesMax = std::size_t{16} * 1024 * 1024;
constexpr std::size_t kTargetsMax = 64;
constexpr std::size_t kTextBytesMax = 1024;
constexpr double kUnit = 1e-4;
constexpr std::int64_t kTimeMax = 4'102'444'800'000'000'000;  // 2100-01-01

std::int64_t to_units(float logarithm) {
  return std::llround(static_cast<double>(logarithm) / kUnit);
}

std::string slices_text(const std::vector<DeploySlice>& slices) {
  std::string text;
  for (const DeploySlice& slice : slices) {
    text += fmt::format("{},{},{},{},", slice.index, to_units(slice.log_batch), to_units(slice.log_context),
                        to_units(slice.log_itl));
    text += slice.bytes_known ? fmt::format("{};", to_units(slice.log_rate)) : ";";
  }
  return text;
}

// The number before `end`; absent where it is none, or no logarithm of anything.
std::optional<std::int64_t> take_number(std::string_view& text, char end) {
  std::int64_t value = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stopped == text.data() + text.size() || *stopped != end) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stopped - text.data()) + 1);
  return value;
}

std::optional<float> take_logarithm(std::string_view& text, char end) {
  constexpr std::int64_t kUnitsMax = 1'000'000;  // e^100
  const auto units = take_number(text, end);
  if (!units || *units > kUnitsMax || *units < -kUnitsMax) return std::nullopt;
  return static_cast<float>(static_cast<double>(*units) * kUnit);
}

std::optional<DeploySlice> take_slice(std::string_view& text) {
  constexpr std::int64_t kIndexMax = kTimeMax / DeploySlices::kSpan.count();
  DeploySlice slice;
  const auto index = take_number(text, ',');
  const auto batch = index ? take_logarithm(text, ',') : std::nullopt;
  const auto context = batch ? take_logarithm(text, ',') : std::nullopt;
  const auto itl = context ? take_logarithm(text, ',') : std::nullopt;
  if (!itl || *index < 0 || *index > kIndexMax) return std::nullopt;
  slice.index = *index;
  slice.log_batch = *batch;
  slice.log_context = *context;
  slice.log_itl = *itl;
  if (text.starts_with(';')) {
    text.remove_prefix(1);
    return slice;
  }
  const auto rate = take_logarithm(text, ';');
  if (!rate) return std::nullopt;
  slice.log_rate = *rate;
  slice.bytes_known = true;
  return slice;
}

Json to_json(const DeployIdentity& identity) {
  return {{"version", identity.version},
          {"wire", identity.wire},
          {"model", identity.model},
          {"model_written", identity.model_written},
          {"settings", identity.settings}};
}

Json to_json(const std::optional<DeployChange>& change) {
  if (!change) return nullptr;
  return {{"ratio", change->ratio}, {"low", change->low}, {"high", change->high}, {"slices", change->slices}};
}

Json to_json(const Comparison& comparison) {
  return {{"against", comparison.against}, {"rate", to_json(comparison.rate)}, {"itl", to_json(comparison.itl)}};
}

Json to_json(const Deploy& deploy) {
  return {{"generation", deploy.generation},
          {"cause", deploy.cause ? Json(server::deploy_cause_name(*deploy.cause)) : Json(nullptr)},
          {"began_ns", deploy.began.ns()},
          {"identity", to_json(deploy.identity)},
          {"marked_version", deploy.marked_version},
          {"change", to_json(deploy.change)},
          {"rollback", to_json(deploy.rollback)},
          {"ended", deploy.ended}};
}

Json to_json(const CharacterRatio::State& ratio) {
  return {{"characters_per_token", ratio.characters_per_token}, {"texts", ratio.learned}};
}

Json to_json(const LearnedTokens& learned) {
  const AnswerEstimate::State& answers = learned.answers;
  return {{"prompts", to_json(learned.prompts)},
          {"answers", to_json(answers.ratio)},
          {"error_of_frames", answers.error_of_frames},
          {"error_of_text", answers.error_of_text},
          {"totals", answers.learned}};
}

Json to_json(const KeptDeploys& kept) {
  const DeployState& state = kept.state;
  Json json = {{"family", kept.key.family},
               {"model", kept.key.model},
               {"port", kept.key.port},
               {"place", kept.key.place},
               {"boot_id", kept.boot_id},
               {"socket", kept.socket},
               {"current", to_json(state.current)},
               {"first_token_ns", state.first_token ? Json(state.first_token->ns()) : Json(nullptr)},
               {"learned", to_json(kept.learned)},
               {"slices", slices_text(state.slices)},
               {"past", Json::array()},
               {"baselines", Json::array()}};
  for (const Deploy& past : state.past) json["past"].push_back(to_json(past));
  for (const DeployBaseline& baseline : state.baselines) {
    json["baselines"].push_back({{"generation", baseline.generation},
                                 {"identity", to_json(baseline.identity)},
                                 {"slices", slices_text(baseline.slices)}});
  }
  return json;
}

// The readers below throw what nlohmann throws, or a Broken; parse_deploy_state() catches both.

struct Broken {};

void require(bool holds) {
  if (!holds) throw Broken();
}

std::string text_at(const Json& json, const char* name) {
  const auto& text = json.at(name).get_ref<const std::string&>();
  require(text.size() <= kTextBytesMax);
  return to_label(text, kTextBytesMax);
}

std::uint64_t count_at(const Json& json, const char* name) {
  const Json& value = json.at(name);
  require(value.is_number_unsigned());
  return value.get<std::uint64_t>();
}

LineTime time_of(const Json& json) {
  const auto ns = json.get<std::int64_t>();
  require(json.is_number_integer() && ns >= 0 && ns < kTimeMax);
  return LineTime::from_ns(ns);
}

std::vector<DeploySlice> slices_at(const Json& json, const char* name) {
  std::string_view text = json.at(name).get_ref<const std::string&>();
  std::vector<DeploySlice> slices;
  while (!text.empty()) {
    const auto slice = take_slice(text);
    require(slice && slices.size() < kDeploySlicesMax);
    slices.push_back(*slice);
  }
  return slices;
}

DeployIdentity identity_from(const Json& json) {
  DeployIdentity identity;
  identity.version = text_at(json, "version");
  identity.wire = text_at(json, "wire");
  identity.model = text_at(json, "model");
  identity.model_written = json.at("model_written").get<std::int64_t>();
  identity.settings = text_at(json, "settings");
  return identity;
}

std::optional<DeployChange> change_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  DeployChange change;
  change.ratio = json.at("ratio").get<double>();
  change.low = json.at("low").get<double>();
  change.high = json.at("high").get<double>();
  change.slices = count_at(json, "slices");
  require(change.low > 0 && change.low <= change.ratio && change.ratio <= change.high && std::isfinite(change.high));
  return change;
}

Comparison comparison_from(const Json& json) {
  return {count_at(json, "against"), change_from(json.at("rate")), change_from(json.at("itl"))};
}

Deploy deploy_from(const Json& json) {
  Deploy deploy;
  deploy.generation = count_at(json, "generation");
  require(deploy.generation > 0 && deploy.generation < UINT64_MAX / 2);
  if (!json.at("cause").is_null()) {
    deploy.cause = server::deploy_cause_from_name(json["cause"].get_ref<const std::string&>());
    require(deploy.cause.has_value());
  }
  deploy.began = time_of(json.at("began_ns"));
  deploy.identity = identity_from(json.at("identity"));
  deploy.marked_version = text_at(json, "marked_version");
  deploy.change = comparison_from(json.at("change"));
  deploy.rollback = comparison_from(json.at("rollback"));
  deploy.ended = json.at("ended").get<bool>();
  return deploy;
}

double number_at(const Json& json, const char* name, double min, double max) {
  const auto value = json.at(name).get<double>();
  require(value >= min && value <= max);
  return value;
}

CharacterRatio::State ratio_from(const Json& json) {
  constexpr double kCharactersMax = 1e6;  // of one token
  return {number_at(json, "characters_per_token", 1 / kCharactersMax, kCharactersMax), count_at(json, "texts")};
}

LearnedTokens learned_from(const Json& json) {
  constexpr double kErrorMax = 1e9;
  LearnedTokens learned;
  learned.prompts = ratio_from(json.at("prompts"));
  learned.answers = {ratio_from(json.at("answers")), number_at(json, "error_of_frames", 0, kErrorMax),
                     number_at(json, "error_of_text", 0, kErrorMax), count_at(json, "totals")};
  return learned;
}

KeptDeploys kept_from(const Json& json) {
  KeptDeploys kept;
  kept.key.family = text_at(json, "family");
  kept.key.model = text_at(json, "model");
  const std::uint64_t port = count_at(json, "port");
  const std::uint64_t place = count_at(json, "place");
  require(port > 0 && port <= UINT16_MAX && place <= kTargetsMax);
  kept.key.port = static_cast<std::uint16_t>(port);
  kept.key.place = static_cast<std::uint32_t>(place);
  kept.boot_id = text_at(json, "boot_id");
  kept.socket = count_at(json, "socket");
  if (json.contains("learned")) kept.learned = learned_from(json["learned"]);
  DeployState& state = kept.state;
  state.current = deploy_from(json.at("current"));
  if (!json.at("first_token_ns").is_null()) state.first_token = time_of(json["first_token_ns"]);
  state.slices = slices_at(json, "slices");
  for (const Json& item : json.at("past")) {
    require(state.past.size() < DeployState::kPastMax);
    state.past.push_back(deploy_from(item));
  }
  for (const Json& item : json.at("baselines")) {
    require(state.baselines.size() < DeployState::kBaselinesMax);
    state.baselines.push_back(
        {count_at(item, "generation"), identity_from(item.at("identity")), slices_at(item, "slices")});
  }
  return kept;
}

}  // namespace

std::string deploy_state_path(const std::string& directory) {
  return directory + "/deploys.json";
}

std::string deploy_state_text(const std::vector<KeptDeploys>& deploys) {
  Json json = {{"version", kVersion}, {"targets", Json::array()}};
  for (const KeptDeploys& kept : deploys) json["targets"].push_back(to_json(kept));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<KeptDeploys>> parse_deploy_state(std::string_view text) {
  if (text.size() > kFileBytesMax) return Error{ErrorCode::kLimit, "", "larger than any state of ours"};
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("targets") || !json["targets"].is_array())
    return Error{ErrorCode::kInvalid, "", "not a JSON object with a list \"targets\""};
  if (!json.contains("version") || json["version"] != kVersion)
    return Error{ErrorCode::kUnsupported, "", "a version of the file that is not ours"};
  std::vector<KeptDeploys> deploys;
  std::size_t broken = 0;
  for (const Json& item : json["targets"]) {
    if (deploys.size() == kTargetsMax) break;
    try {
      deploys.push_back(kept_from(item));
    } catch (const Broken&) {
      ++broken;
    } catch (const Json::exception&) {
      ++broken;
    }
  }
  if (broken > 0) log::warning("the deploys of {} targets in the state file are broken and are left out", broken);
  return deploys;
}

std::vector<KeptDeploys> load_deploys(const std::string& directory) {
  const std::string path = deploy_state_path(directory);
  const auto text = read_file(path, kFileBytesMax);
  if (!text) {
    if (text.error().code != ErrorCode::kNotFound)
      log::warning("{}: deploys are compared with what comes from now on", text.error().message());
    return {};
  }
  auto deploys = parse_deploy_state(*text);
  if (deploys) return std::move(*deploys);
  log::warning("{}: {}: deploys are compared with what comes from now on", path, deploys.error().message());
  return {};
}

Status save_deploys(const std::string& directory, const std::vector<KeptDeploys>& deploys) {
  return replace_file(deploy_state_path(directory), deploy_state_text(deploys));
}

}  // namespace rooflined::daemon
