#include "collectors/server/identity.h"

#include "metrics/base/utf8.h"

#include <nlohmann/json.hpp>

#include <array>
#include <utility>

namespace rooflined::server {
namespace {

using nlohmann::json;

constexpr std::size_t kModelsMax = 256;
constexpr std::size_t kAliasesMax = 16;
constexpr std::size_t kTextBytesMax = 1024;

constexpr std::array<std::pair<std::string_view, ServerFamily>, 8> kOwners = {{
    {"llamacpp", ServerFamily::kLlamaCpp},
    {"vllm", ServerFamily::kVllm},
    {"sglang", ServerFamily::kSglang},
    {"library", ServerFamily::kOllama},  // its default namespace; others are the user's own
    {"koboldcpp", ServerFamily::kKoboldCpp},
    {"lmdeploy", ServerFamily::kLmDeploy},
    {"MLC-LLM", ServerFamily::kMlc},
    {"aphrodite", ServerFamily::kAphrodite},
}};

// A member that is there, or a null.
const json& member(const json& object, const char* name) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string text(const json& value) {
  const auto* string = value.get_ptr<const json::string_t*>();
  if (string == nullptr || string->size() > kTextBytesMax) return {};
  return *string;
}

std::optional<std::uint64_t> number(const json& value) {
  if (const auto* unsigned_value = value.get_ptr<const json::number_unsigned_t*>()) return *unsigned_value;
  return std::nullopt;
}

Result<json> parse(std::string_view body, std::string_view what) {
  json value = json::parse(body.begin(), body.end(), nullptr, false);
  if (value.is_discarded()) {
    // One byte that is not UTF-8, in a model's name say, must not cost the rest.
    const std::string cleaned = to_label(body, 3 * body.size());
    value = json::parse(cleaned, nullptr, false);
  }
  if (value.is_discarded()) return Error{ErrorCode::kInvalid, std::string(what), "the answer is not JSON"};
  if (!value.is_object()) return Error{ErrorCode::kInvalid, std::string(what), "the answer is not a JSON object"};
  return value;
}

// The file that a router starts a loaded model with.
std::string path_of_loaded(const json& status) {
  if (text(member(status, "value")) != "loaded") return {};
  bool is_path = false;
  for (const json& argument : member(status, "args")) {
    const std::string word = text(argument);
    if (is_path) return word;
    is_path = word == "--model" || word == "-m";
  }
  return {};
}

ServedModel served_model(const json& entry) {
  ServedModel model;
  model.id = text(member(entry, "id"));
  model.base = text(member(entry, "parent"));
  model.root = text(member(entry, "root"));
  if (model.root.empty()) model.root = path_of_loaded(member(entry, "status"));
  const json& meta = member(entry, "meta");
  model.parameters = number(member(meta, "n_params"));
  model.tensor_bytes = number(member(meta, "size"));
  for (const json& alias : member(entry, "aliases")) {
    if (model.aliases.size() == kAliasesMax) break;
    if (std::string name = text(alias); !name.empty()) model.aliases.push_back(std::move(name));
  }
  return model;
}

std::string last_component(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  return to_label(name.substr(name.rfind('/') + 1));  // npos + 1 is 0
}

bool goes_by(const ServedModel& model, std::string_view name) {
  if (model.id == name || last_component(model.id) == name) return true;
  for (const std::string& alias : model.aliases) {
    if (alias == name) return true;
  }
  return false;
}

void take_text(const json& value, std::string& into) {
  if (std::string told = text(value); !told.empty()) into = std::move(told);
}

// "auto" is the type of the weights: nothing told.
void take_cache_type(std::string told, ServerIdentity& identity) {
  if (!told.empty() && told != "auto") identity.kv_cache_type = std::move(told);
}

}  // namespace

const ServedModel* ServerIdentity::base_model() const {
  const ServedModel* found = nullptr;
  for (const ServedModel& model : models) {
    if (!model.base.empty()) continue;
    if (found != nullptr) return nullptr;
    found = &model;
  }
  return found;
}

std::string ServerIdentity::model_label() const {
  const ServedModel* model = base_model();
  return model == nullptr ? std::string() : last_component(model->id);
}

std::string ServerIdentity::model_label(std::string_view requested) const {
  for (const ServedModel& model : models) {
    if (goes_by(model, requested)) return last_component(model.base.empty() ? model.id : model.base);
  }
  return {};
}

std::vector<std::string> ServerIdentity::running_models() const {
  const ServedModel* listed = running.empty() ? base_model() : nullptr;
  return listed == nullptr ? running : std::vector{listed->id};
}

std::vector<ListedModel> listed_models(const ServerIdentity& identity) {
  std::vector<ListedModel> listed;
  std::map<std::string, unsigned> bearers;
  for (const ServedModel& model : identity.models) {
    if (model.base.empty()) ++bearers[last_component(model.id)];
  }
  for (const ServedModel& model : identity.models) {
    if (!model.base.empty()) continue;
    const std::string name = last_component(model.id);
    const bool own = bearers[name] == 1;
    ListedModel& entry = listed.emplace_back(ListedModel{&model, own ? name : to_label(model.id), {}});
    entry.names.push_back(model_name_hash(model.id));
    if (own) entry.names.push_back(model_name_hash(name));
    for (const std::string& alias : model.aliases) entry.names.push_back(model_name_hash(alias));
    for (const ServedModel& adapter : identity.models) {
      if (adapter.base == model.id) entry.names.push_back(model_name_hash(adapter.id));
    }
  }
  return listed;
}

ServerFamily family_of_owner(std::string_view owned_by) {
  for (const auto& [owner, family] : kOwners) {
    if (owner == owned_by) return family;
  }
  return ServerFamily::kUnknown;
}

Status add_models_answer(std::string_view body, ServerIdentity& identity) {
  const Result<json> answer = parse(body, "/v1/models");
  if (!answer) return answer.error();
  const json& data = member(*answer, "data");
  if (!data.is_array()) return Error{ErrorCode::kInvalid, "/v1/models", "the answer has no list \"data\""};
  identity.models.clear();
  for (const json& entry : data) {
    if (identity.models.size() == kModelsMax) break;
    ServedModel model = served_model(entry);
    if (model.id.empty()) continue;
    if (identity.family == ServerFamily::kUnknown) identity.family = family_of_owner(text(member(entry, "owned_by")));
    identity.models.push_back(std::move(model));
  }
  // vLLM's weights: a folder or a hub name.
  if (const ServedModel* base = identity.base_model(); base != nullptr && identity.model_path.empty()) {
    identity.model_path = base->root;
  }
  return ok_status();
}

Status add_props_answer(std::string_view body, ServerIdentity& identity) {
  const Result<json> answer = parse(body, "/props");
  if (!answer) return answer.error();
  const json& settings = member(*answer, "default_generation_settings");
  if (!settings.is_object() && !member(*answer, "model_path").is_string()) {
    return Error{ErrorCode::kInvalid, "/props", "the answer is not of llama.cpp's shape"};
  }
  if (identity.family == ServerFamily::kUnknown) identity.family = ServerFamily::kLlamaCpp;
  take_text(member(*answer, "build_info"), identity.version);
  identity.router = text(member(*answer, "role")) == "router";
  if (!identity.router) take_text(member(*answer, "model_path"), identity.model_path);  // a router's is "none"
  identity.context_per_slot = number(member(settings, "n_ctx"));
  identity.slots = number(member(*answer, "total_slots"));
  // Builds of 2025 say it with a flag, those of 2026 with the kinds of speculation in use.
  const json& flag = member(settings, "speculative");
  const std::string kinds = text(member(member(settings, "params"), "speculative.types"));
  if (const auto* told = flag.get_ptr<const json::boolean_t*>()) identity.speculative = *told;
  if (!kinds.empty()) identity.speculative = kinds != "none";
  for (const json* part : {&*answer, &settings, &member(settings, "params")}) {
    const std::string key = text(member(*part, "cache_type_k"));
    const std::string value = text(member(*part, "cache_type_v"));
    if (!key.empty()) identity.kv_cache_type = value.empty() ? key : key + ',' + value;
  }
  return ok_status();
}

Status add_version_answer(std::string_view body, ServerIdentity& identity) {
  const Result<json> answer = parse(body, "version");
  if (!answer) return answer.error();
  take_text(member(*answer, "version"), identity.version);
  return ok_status();
}

Status add_model_answer(std::string_view body, ServerIdentity& identity) {
  const Result<json> answer = parse(body, "model");
  if (!answer) return answer.error();
  take_text(member(*answer, "version"), identity.version);
  take_text(member(*answer, "model_id"), identity.model_path);    // TGI
  take_text(member(*answer, "model_path"), identity.model_path);  // SGLang
  return ok_status();
}

Status add_running_answer(std::string_view body, ServerIdentity& identity) {
  const Result<json> answer = parse(body, "/api/ps");
  if (!answer) return answer.error();
  const json& models = member(*answer, "models");
  if (!models.is_array()) return Error{ErrorCode::kInvalid, "/api/ps", "the answer has no list \"models\""};
  identity.running.clear();
  for (const json& entry : models) {
    if (identity.running.size() == kModelsMax) break;
    std::string name = text(member(entry, "model"));
    if (name.empty()) name = text(member(entry, "name"));
    if (!name.empty()) identity.running.push_back(std::move(name));
  }
  return ok_status();
}

Status add_arguments_answer(std::string_view body, ServerIdentity& identity) {
  const Result<json> answer = parse(body, "/server_info");
  if (!answer) return answer.error();
  take_cache_type(text(member(*answer, "kv_cache_dtype")), identity);
  // Not the whole of them: a server's keys are among its arguments.
  for (const char* name :
       {"attention_backend", "dp_size", "ep_size", "pp_size", "quantization", "speculative_algorithm", "tp_size"}) {
    const json& value = member(*answer, name);
    std::string told = to_label(text(value), 32);
    if (const auto size = number(value)) told = std::to_string(*size);
    if (!told.empty()) identity.arguments[name] = std::move(told);
  }
  return ok_status();
}

Status add_metrics_answer(std::string_view text, ServerIdentity& identity) {
  constexpr std::string_view kFamily = "\nvllm:cache_config_info{";
  constexpr std::string_view kLabel = "cache_dtype=\"";
  const std::size_t at = text.find(kFamily);
  if (at == std::string_view::npos) {
    return Error{ErrorCode::kNotFound, "/metrics", "has no vllm:cache_config_info"};
  }
  const std::string_view line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  for (std::size_t label = line.find(kLabel); label != std::string_view::npos; label = line.find(kLabel, label + 1)) {
    // A part of another label's name, "swap_cache_dtype" say, is not it.
    if (line[label - 1] != '{' && line[label - 1] != ',') continue;
    const std::string_view value = line.substr(label + kLabel.size());
    take_cache_type(to_label(value.substr(0, value.find('"')), 32), identity);
    return ok_status();
  }
  return Error{ErrorCode::kNotFound, "/metrics", "vllm:cache_config_info has no cache_dtype"};
}

}  // namespace rooflined::server
