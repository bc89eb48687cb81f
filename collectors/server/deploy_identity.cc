#include "collectors/server/deploy_identity.h"

#include "collectors/server/model_stamp.h"
#include "collectors/server/stable_hash.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace rooflined::server {
namespace {

constexpr std::size_t kSettingsBytesMax = 512;

bool differ(const std::string& before, const std::string& told) {
  return !before.empty() && !told.empty() && before != told;
}

}  // namespace

std::string_view deploy_cause_name(DeployCause cause) {
  return kDeployCauseNames[static_cast<std::size_t>(cause)];
}

std::optional<DeployCause> deploy_cause_from_name(std::string_view name) {
  const auto found = std::find(kDeployCauseNames.begin(), kDeployCauseNames.end(), name);
  if (found == kDeployCauseNames.end()) return std::nullopt;
  return static_cast<DeployCause>(found - kDeployCauseNames.begin());
}

DeployIdentity deploy_identity(const ServerIdentity& told, std::string_view cache_type, const std::string& model_path) {
  DeployIdentity identity;
  identity.version = to_label(told.version);
  const auto add = [&identity](std::string_view name, std::string_view value) {
    if (!value.empty()) identity.settings += fmt::format("{}{}={}", identity.settings.empty() ? "" : " ", name, value);
  };
  const auto add_number = [&add](std::string_view name, const std::optional<std::uint64_t>& value) {
    if (value) add(name, std::to_string(*value));
  };
  add_number("slots", told.slots);
  add_number("context", told.context_per_slot);
  if (told.speculative) add("speculative", *told.speculative ? "1" : "0");
  add("kv_cache_type", cache_type.empty() ? std::string_view(told.kv_cache_type) : cache_type);
  for (const auto& [name, value] : told.arguments) add(name, value);
  identity.settings = to_label(identity.settings, kSettingsBytesMax);
  const Result<ModelStamp> stamp = read_model_stamp(model_path);
  if (stamp) {
    identity.model = stamp->contents;
    identity.model_written = stamp->written;
  } else if (const ServedModel* model = told.base_model(); model != nullptr && model->tensor_bytes) {
    identity.model = fmt::format("{}-{}", *model->tensor_bytes, model->parameters.value_or(0));
  }
  return identity;
}

std::optional<DeployCause> difference(const DeployIdentity& before, const DeployIdentity& told) {
  if (differ(before.version, told.version)) return DeployCause::kVersion;
  const bool rewritten =
      before.model_written != 0 && told.model_written != 0 && before.model_written != told.model_written;
  if (differ(before.model, told.model) || rewritten) return DeployCause::kModel;
  if (differ(before.settings, told.settings)) return DeployCause::kSettings;
  // vLLM's has the version and a hash of the settings in it.
  const bool same_version = !before.version.empty() && !told.version.empty();
  if (differ(before.wire, told.wire)) return same_version ? DeployCause::kSettings : DeployCause::kVersion;
  return std::nullopt;
}

DeployIdentity completed(const DeployIdentity& told, const DeployIdentity& before) {
  DeployIdentity all = told;
  if (all.version.empty()) all.version = before.version;
  if (all.wire.empty()) all.wire = before.wire;
  if (all.model.empty()) all.model = before.model;
  if (all.model_written == 0) all.model_written = before.model_written;
  if (all.settings.empty()) all.settings = before.settings;
  return all;
}

std::string fingerprint(std::string_view family, std::string_view served_model, const DeployIdentity& identity) {
  constexpr unsigned kSpareBits = 16;
  StableHash hash;
  hash.add_text(family);
  hash.add_text(served_model);
  hash.add_text(identity.version.empty() ? identity.wire : identity.version);
  hash.add_text(identity.model);
  hash.add_text(identity.settings);
  return fmt::format("{:012x}", hash.value() >> kSpareBits);
}

}  // namespace rooflined::server
