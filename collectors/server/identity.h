// What a server says about itself: pure functions over the JSON of its answers.
//
//   in:   the bodies of GET /v1/models, /props, /version, … (wire-formats differ by family; all are untrusted)
//   out:  ServerIdentity, filled as far as they tell
//
// Bounded: at most 256 models of 16 aliases, texts of 1 KiB. Nothing throws; a broken answer changes nothing.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/units.h"
#include "metrics/exchange.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::server {

// One entry of the server's list.
struct ServedModel {
  std::string id;
  std::vector<std::string> aliases;
  std::string base;  // of an adapter: the id of the model that it adapts; else empty
  std::string root;  // where the weights came from, where the server says (vLLM, llama.cpp's router)
  std::optional<std::uint64_t> parameters;
  std::optional<Bytes> tensor_bytes;
};

struct ServerIdentity {
  ServerFamily family = ServerFamily::kUnknown;
  std::string version;     // as the server spells it: "b11669-Debian", "0.11.0"
  std::string model_path;  // as told: absolute, relative to the server's folder, or a hub name
  std::vector<ServedModel> models;
  std::optional<std::uint64_t> context_per_slot;
  std::optional<std::uint64_t> slots;
  std::optional<bool> speculative;
  bool router = false;  // llama.cpp: it has a server of its own for each model, and none itself
  std::map<std::string, std::string> arguments;  // that it was started with, as far as they make it another deploy
  std::string kv_cache_type;         // "q8_0,f16", "fp8_e4m3"; empty: not told, or as the model's weights are
  std::vector<std::string> running;  // Ollama: the models that are loaded
  // Ollama: what it tells of those, as JSON (collectors/model reads it).
  std::map<std::string, std::string> descriptions;

  // The model to name in labels: the last path component of the one base model; empty where there is none or are
  // several.
  std::string model_label() const;
  // The same for the name that a client used; empty where the server does not list it.
  std::string model_label(std::string_view requested) const;
  // Ollama: the models that streams may come from: those that are loaded, or the only one that is listed.
  std::vector<std::string> running_models() const;
  // An engine for each model, all behind this port.
  bool several_engines() const { return router || family == ServerFamily::kOllama; }
  // The one base model's entry; nullptr where there is none or are several.
  const ServedModel* base_model() const;
};

// A model of the list, by what it may be asked for.
struct ListedModel {
  const ServedModel* served;         // lives as long as the identity
  std::string label;                 // no other's in the list
  std::vector<std::uint64_t> names;  // model_name_hash() of its id, aliases, and adapters' ids
};
// Base models only. Two whose last path component is the same are called by their whole ids.
std::vector<ListedModel> listed_models(const ServerIdentity& identity);

// The family behind `owned_by` of /v1/models; kUnknown where it says nothing.
ServerFamily family_of_owner(std::string_view owned_by);

// Each adds what the answer tells. An error: not JSON, or not of the expected shape.
Status add_models_answer(std::string_view json, ServerIdentity& identity);     // GET /v1/models, any family
Status add_props_answer(std::string_view json, ServerIdentity& identity);      // GET /props, llama.cpp
Status add_version_answer(std::string_view json, ServerIdentity& identity);    // vLLM, Ollama, KoboldCpp, TensorRT-LLM
Status add_model_answer(std::string_view json, ServerIdentity& identity);      // TGI /info, SGLang /model_info
Status add_running_answer(std::string_view json, ServerIdentity& identity);    // Ollama /api/ps
Status add_arguments_answer(std::string_view json, ServerIdentity& identity);  // SGLang /server_info
// vLLM /metrics, in Prometheus' text: `vllm:cache_config_info{…,cache_dtype="fp8",…} 1`.
Status add_metrics_answer(std::string_view text, ServerIdentity& identity);

}  // namespace rooflined::server
