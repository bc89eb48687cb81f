// The settings as plain structs: what config/rooflined.toml documents, with the same defaults.
//
// Only the daemon holds a Config; every module has an Options struct of its own that the daemon fills from here.
// "auto" in the file is an empty optional or an empty string here: the daemon finds out by itself.

#pragma once

#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rooflined::config {

struct WebConfig {
  std::string listen = "127.0.0.1:10074";  // "ADDRESS:PORT", "[IPV6]:PORT" or ":PORT"
  std::string tls_certificate;             // both or none
  std::string tls_key;
  std::map<std::string, std::string> basic_auth_users;  // user → bcrypt hash

  bool operator==(const WebConfig&) const = default;
};

struct StateConfig {
  std::string directory = "/var/lib/rooflined";

  bool operator==(const StateConfig&) const = default;
};

struct CaptureConfig {
  std::string interface = "any";
  std::vector<std::uint16_t> ports = {8080, 8000, 30000, 11434, 3000, 1234, 5001, 23333};

  bool operator==(const CaptureConfig&) const = default;
};

struct ServerConfig {
  bool identify = true;             // ask a server who it is
  std::string identify_token_file;  // a bearer token for that question; empty: none

  bool operator==(const ServerConfig&) const = default;
};

struct WindowSpan {
  std::string name;  // as written: the value of the label `window`
  Duration span{};

  bool operator==(const WindowSpan&) const = default;
};

struct WindowsConfig {
  std::vector<WindowSpan> spans = {{"1m", std::chrono::minutes(1)}, {"5m", std::chrono::minutes(5)}};

  bool operator==(const WindowsConfig&) const = default;
};

enum class MeasureCeiling : std::uint8_t {
  kAuto,  // where a target runs on the CPU, or none is known yet to run elsewhere
  kAlways,
  kNever,
};

struct CeilingConfig {
  MeasureCeiling measure = MeasureCeiling::kAuto;
  Duration interval = std::chrono::hours(6);
  Duration idle_for = std::chrono::seconds(60);
  Duration max_age = std::chrono::hours(7 * 24);
  unsigned repetitions = 5;
  std::optional<Bytes> working_set;                     // empty: four times the caches
  std::optional<BytesPerSecond> peak_bytes_per_second;  // set: nothing is measured

  bool operator==(const CeilingConfig&) const = default;
};

struct LimitsConfig {
  double cpu = 0.05;         // of a core, for the capture; above it flows are left out
  unsigned models_max = 32;  // models with series of their own; the others are "other"

  bool operator==(const LimitsConfig&) const = default;
};

enum class Device : std::uint8_t { kAuto, kCpu, kGpu };

struct TargetConfig {
  std::string name;  // the label `target`
  std::uint16_t port = 0;
  std::string model;  // path of a model file or folder, or a hub name; empty: found by itself
  unsigned replicas = 1;
  unsigned pipeline_parallel = 1;
  Device device = Device::kAuto;
  std::vector<int> numa_nodes;  // whose memory the engine is pinned to; empty: all
  unsigned gpus = 1;
  std::optional<BytesPerSecond> rated_bytes_per_second;  // of one GPU
  std::string kv_cache_type;                             // "q8_0", or "q8_0,f16" for K and V; empty: found by itself
  std::optional<double> weight_bits;                     // of a weight, where the engine converts at load
  double expert_skew = 1;                                // factor on the expected number of distinct experts
  std::optional<bool> speculative;
  std::string draft_model;       // as `model`, of the model that drafts; empty: none, or unknown
  std::optional<bool> identify;  // empty: as in [server]
  std::string identify_token_file;
  // Geometry that overrides what the model says, by the names of `rooflined inspect --json`.
  std::optional<double> dense_bytes_per_pass;
  std::optional<double> head_bytes;
  std::optional<unsigned> moe_layers;
  std::optional<unsigned> experts;  // 0: a dense model
  std::optional<double> experts_per_token;
  std::optional<double> expert_bytes;  // one expert in one layer
  std::optional<double> kv_bytes_per_token;
  std::optional<double> state_bytes_per_sequence;

  bool operator==(const TargetConfig&) const = default;
};

struct Config {
  WebConfig web;
  StateConfig state;
  CaptureConfig capture;
  ServerConfig server;
  WindowsConfig windows;
  CeilingConfig ceiling;
  LimitsConfig limits;
  std::vector<TargetConfig> targets;

  bool operator==(const Config&) const = default;
};

}  // namespace rooflined::config
