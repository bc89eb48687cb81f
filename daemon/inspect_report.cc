#include "daemon/inspect_report.h"

#include "metrics/geometry.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

namespace rooflined::daemon {
namespace {

using model::ModelFile;
using Json = nlohmann::ordered_json;

// 2^53: up to here every whole number of bytes is exact.
constexpr double kWholeMax = 9007199254740992.0;

// A whole number without a decimal point, as other tools expect bytes.
Json number(double value) {
  if (std::abs(value) <= kWholeMax && std::floor(value) == value) return static_cast<std::int64_t>(value);
  return value;
}

template <typename T>
Json number_if(bool known, T value) {
  return known ? number(static_cast<double>(value)) : Json(nullptr);
}

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// MoE layers seen as one: files whose layers differ (mixed quantisation) are rare in shape and common in bytes.
struct Experts {
  std::uint64_t layers = 0;
  std::uint64_t experts = 0;
  double experts_per_token = 0;
  double bytes_per_expert = 0;  // the mean over the layers
};

Experts summarise(const ModelFile& model) {
  Experts all;
  for (const model::ExpertLayers& group : model.expert_layers) {
    all.layers += group.layers;
    all.bytes_per_expert += static_cast<double>(group.layers) * group.bytes_per_expert;
    if (group.experts <= all.experts) continue;
    all.experts = group.experts;
    all.experts_per_token = group.experts_per_token;
  }
  if (all.layers > 0) all.bytes_per_expert /= static_cast<double>(all.layers);
  return all;
}

std::string kv_type_names(const model::KvCacheTypes& types) {
  std::string names = types.key == types.value ? std::string(types.key->name)
                                               : fmt::format("{},{}", types.key->name, types.value->name);
  std::transform(names.begin(), names.end(), names.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return names;
}

// Decimal, as bandwidth is.
std::string scaled(double value, std::string_view unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  while (value >= 999.95 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.{}f} {}{}", value, prefix == 0 ? 0 : 1, kPrefixes[prefix], unit);
}

std::string experts_text(const Experts& experts) {
  return fmt::format("{} experts, {} for each token, in {} layers, {} each", experts.experts, experts.experts_per_token,
                     experts.layers, scaled(experts.bytes_per_expert, "B"));
}

std::string weights_text(const ModelFile& model, const Geometry& geometry, double batch) {
  const double pass = geometry.weight_bytes(batch).total();
  return fmt::format("{} at batch {:g} (output head {}, {:.1f} %)", scaled(pass, "B"), batch,
                     scaled(geometry.head_bytes, "B"), 100 * geometry.head_bytes / std::max(pass, 1.0)) +
         (model.expert_layers.empty()
              ? ""
              : fmt::format("; {} with all experts", scaled(static_cast<double>(model.streamed_bytes), "B")));
}

std::string label_text(const ModelFile& model) {
  if (!model.on_label_share) {
    return fmt::format("{}: {}", model.label.empty() ? "none" : model.label, "no single tensor type to compare with");
  }
  return fmt::format("{}: {:.1f} % of the repeating layers' bytes are of the type that it names", model.label,
                     100 * *model.on_label_share);
}

// KV figures alone, which may be known where the weights are not.
Geometry cache_only(const ModelFile& model, const model::KvCacheTypes& types) {
  ModelFile copy = model;
  copy.weights_known = true;
  return *model::make_geometry(copy, types);
}

// Tokens per second of all sequences together: a pass makes one for each, and reads the weights and every cache.
std::optional<double> tokens_per_second_bound(const ModelFile& model, const Geometry& geometry,
                                              const InspectOptions& options) {
  if (!options.bandwidth || !model.weights_known || !model.kv_known) return std::nullopt;
  const double pass = geometry.weight_bytes(options.batch).total() + options.batch * geometry.kv_bytes(options.context);
  if (pass <= 0) return std::nullopt;
  return options.batch * *options.bandwidth / pass;
}

std::string text_or_unknown(bool known, std::string text) {
  return known ? std::move(text) : "unknown";
}

}  // namespace

Json inspect_json(const ModelFile& model, const InspectOptions& options) {
  const Geometry geometry = cache_only(model, options.kv_cache_types);
  const Experts experts = summarise(model);
  const bool weights = model.weights_known;
  Json json;
  json["format"] = model.format;
  json["architecture"] = model.architecture;
  json["name"] = model.name;
  json["label"] = model.label;
  json["parameters_total"] = number(model.parameters_total);
  json["parameters_active"] = number_if(weights, model.parameters_active);
  json["tied_embeddings"] = model.tied_embeddings;
  json["dense_bytes_per_pass"] = number_if(weights, model.dense_bytes);
  json["head_bytes"] = number_if(weights, model.head_bytes);
  json["moe_layers"] = number_if(weights, experts.layers);
  json["experts"] = number_if(weights, experts.experts);
  json["experts_per_token"] = number_if(weights, experts.experts_per_token);
  json["expert_bytes"] = number_if(weights, experts.bytes_per_expert);
  json["batch"] = number(options.batch);
  json["bytes_per_pass"] = number_if(weights, geometry.weight_bytes(options.batch).total());
  json["kv_cache_type"] = kv_type_names(options.kv_cache_types);
  json["kv_bytes_per_token"] = number_if(model.kv_known, geometry.kv_bytes_per_token());
  json["context"] = number(options.context);
  json["kv_bytes_read"] = number_if(model.kv_known, geometry.kv_bytes(options.context));
  json["state_bytes_per_sequence"] = number_if(model.kv_known, geometry.state_bytes_per_sequence);
  if (options.bandwidth) {
    json["bandwidth_bytes_per_second"] = number(*options.bandwidth);
    json["tokens_per_second_bound"] = optional_number(tokens_per_second_bound(model, geometry, options));
  }
  json["streamed_bytes"] = number_if(weights, model.streamed_bytes);
  json["tensor_bytes"] = model.tensor_bytes;
  json["file_bytes"] = model.file_bytes;
  json["files"] = model.files;
  json["composition"] = Json::array();
  for (const model::TypeShare& part : model.composition) {
    json["composition"].push_back({{"type", part.type}, {"bytes", part.bytes}, {"share", part.share}});
  }
  json["on_label_share"] = optional_number(model.on_label_share);
  json["bits_per_weight"] = optional_number(model.bits_per_weight);
  json["warnings"] = model.warnings;
  return json;
}

std::string inspect_table(const ModelFile& model, const InspectOptions& options) {
  const Geometry geometry = cache_only(model, options.kv_cache_types);
  std::string out;
  const auto line = [&](std::string_view what, std::string_view text) { out += fmt::format("{:<13}{}\n", what, text); };
  line("model", fmt::format("{} ({}, {})", model.name.empty() ? "without a name" : model.name, model.architecture,
                            model.format));
  line("files", fmt::format("{}, {}", model.files, scaled(static_cast<double>(model.file_bytes), "B")));
  line("parameters", fmt::format("{}, {} active for a token{}", scaled(model.parameters_total, ""),
                                 model.weights_known ? scaled(model.parameters_active, "") : "unknown",
                                 model.tied_embeddings ? "; embedding and output head are one" : ""));
  line("a pass reads", model.weights_known ? weights_text(model, geometry, options.batch) : "unknown");
  if (!model.expert_layers.empty()) line("experts", experts_text(summarise(model)));
  line("KV cache", !model.kv_known ? "unknown"
                                   : fmt::format("{:.0f} B for a token ({}); {} read at a context of {:g}",
                                                 geometry.kv_bytes_per_token(), kv_type_names(options.kv_cache_types),
                                                 scaled(geometry.kv_bytes(options.context), "B"), options.context));
  if (const auto bound = tokens_per_second_bound(model, geometry, options)) {
    line("at most", fmt::format("{:.1f} tokens/s at {}", *bound, scaled(*options.bandwidth, "B/s")));
  }
  for (const model::TypeShare& part : model.composition) {
    line(&part == model.composition.data() ? "layers" : "",
         fmt::format("{:<8}{:>6.1f} %  {}", part.type, 100 * part.share, scaled(static_cast<double>(part.bytes), "B")));
  }
  if (model.bits_per_weight) line("bits/weight", fmt::format("{:.2f}", *model.bits_per_weight));
  if (!model.composition.empty()) line("label", label_text(model));
  for (const std::string& warning : model.warnings) line("warning", warning);
  return out;
}

std::string inspect_comparison(const std::vector<std::string>& names, const std::vector<ModelFile>& models,
                               const InspectOptions& options) {
  constexpr std::string_view kColumns = "{:<40} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9} {:>6} {:>10}\n";
  std::string out = fmt::format(fmt::runtime(kColumns), "model", "file", "parameters", "a pass", "KV/token", "head",
                                "on label", "bits", "tokens/s");
  for (std::size_t at = 0; at < models.size() && at < names.size(); ++at) {
    const ModelFile& model = models[at];
    const Geometry geometry = cache_only(model, options.kv_cache_types);
    const double pass = geometry.weight_bytes(options.batch).total();
    const std::optional<double> bound = tokens_per_second_bound(model, geometry, options);
    out += fmt::format(
        fmt::runtime(kColumns), names[at], scaled(static_cast<double>(model.file_bytes), "B"),
        scaled(model.parameters_total, ""), text_or_unknown(model.weights_known, scaled(pass, "B")),
        text_or_unknown(model.kv_known, scaled(geometry.kv_bytes_per_token(), "B")),
        text_or_unknown(model.weights_known, fmt::format("{:.1f} %", 100 * geometry.head_bytes / std::max(pass, 1.0))),
        model.on_label_share ? fmt::format("{:.1f} %", 100 * *model.on_label_share) : "-",
        model.bits_per_weight ? fmt::format("{:.2f}", *model.bits_per_weight) : "-",
        bound ? fmt::format("{:.1f}", *bound) : "-");
  }
  return out;
}

}  // namespace rooflined::daemon
