// What one build of a server with one model and its settings is told from another by.
//
// Plain data and, but for reading a model's stamp, pure functions. What is empty (or 0) is not known, and what is not
// known differs from nothing.

#pragma once

#include "collectors/server/identity.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rooflined::server {

// Why a target is another than before.
enum class DeployCause : std::uint8_t {
  kRestart,   // the same as before, as far as it tells
  kVersion,   // of the server
  kModel,     // another file, or another model by name
  kSettings,  // that it tells: the type of the cache, slots, parallelism
  kMarked,    // `rooflined mark-deploy` said so
  kMachine,   // the memory changed, not the server
};
inline constexpr std::array<std::string_view, 6> kDeployCauseNames = {"restart",  "version", "model",
                                                                      "settings", "marked",  "machine"};
std::string_view deploy_cause_name(DeployCause cause);
std::optional<DeployCause> deploy_cause_from_name(std::string_view name);

struct DeployIdentity {
  std::string version;             // as it answers
  std::string wire;                // as its responses call the build (system_fingerprint)
  std::string model;               // of its file: size and a hash of the metadata
  std::int64_t model_written = 0;  // when the file was: Unix time in seconds; differs from node to node
  std::string settings;

  bool operator==(const DeployIdentity&) const = default;
};

// From what a server answered. `cache_type` where it is known otherwise; `model_path` of the file or folder that it
// serves, empty where that cannot be read: then the sizes that it tells stand for it.
DeployIdentity deploy_identity(const ServerIdentity& told, std::string_view cache_type, const std::string& model_path);

// What makes `told` another one than `before`; absent where they agree as far as both are known.
std::optional<DeployCause> difference(const DeployIdentity& before, const DeployIdentity& told);
// `told`, and of `before` what it does not tell.
DeployIdentity completed(const DeployIdentity& told, const DeployIdentity& before);

// Twelve hexadecimal digits, equal on every node that serves the same model with the same build and settings.
std::string fingerprint(std::string_view family, std::string_view served_model, const DeployIdentity& identity);

}  // namespace rooflined::server
