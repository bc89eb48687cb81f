#include "daemon/geometry_overrides.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace rooflined::daemon {
namespace {

using config::TargetConfig;

bool overrides_experts(const TargetConfig& settings) {
  return settings.moe_layers || settings.experts || settings.experts_per_token || settings.expert_bytes;
}

bool overrides_anything(const TargetConfig& settings) {
  return settings.dense_bytes_per_pass || settings.head_bytes || settings.kv_bytes_per_token ||
         settings.state_bytes_per_sequence || overrides_experts(settings);
}

// Layers with windows keep them: what is overridden is the bytes of a token in all layers together.
void override_cache(Geometry& geometry, const TargetConfig& settings) {
  if (settings.kv_bytes_per_token) {
    const double told = *settings.kv_bytes_per_token;
    const double found = geometry.kv_bytes_per_token();
    if (geometry.kv_known && found > 0) {
      for (KvGroup& group : geometry.kv_groups) group.bytes_per_token *= told / found;
    } else {
      geometry.kv_groups = {KvGroup{1, told}};
    }
    geometry.kv_known = true;
  }
  if (settings.state_bytes_per_sequence) geometry.state_bytes_per_sequence = *settings.state_bytes_per_sequence;
}

// The layers of the model as far as the settings leave them, or one group where they say how many layers there are.
void override_experts(Geometry& geometry, const TargetConfig& settings, std::string& warning) {
  if (settings.experts == 0U || settings.moe_layers == 0U) {
    geometry.expert_groups.clear();
    return;
  }
  std::vector<ExpertGroup> groups = geometry.expert_groups;
  if (settings.moe_layers) {
    ExpertGroup one = groups.empty() ? ExpertGroup{} : groups.front();
    double bytes = 0;
    std::uint64_t layers = 0;
    for (const ExpertGroup& group : groups) {
      bytes += static_cast<double>(group.layers) * group.bytes_per_expert;
      layers += group.layers;
    }
    if (layers > 0) one.bytes_per_expert = bytes / static_cast<double>(layers);
    one.layers = *settings.moe_layers;
    groups = {one};
  }
  for (ExpertGroup& group : groups) {
    if (settings.experts) group.experts = *settings.experts;
    if (settings.experts_per_token) group.experts_per_token = *settings.experts_per_token;
    if (settings.expert_bytes) group.bytes_per_expert = *settings.expert_bytes;
    group.experts_per_token = std::min(group.experts_per_token, static_cast<double>(group.experts));
  }
  const bool complete = !groups.empty() && std::all_of(groups.begin(), groups.end(), [](const ExpertGroup& group) {
    return group.layers > 0 && group.experts > 0 && group.experts_per_token > 0 && group.bytes_per_expert > 0;
  });
  if (complete) {
    geometry.expert_groups = std::move(groups);
  } else {
    warning =
        "moe_layers, experts, experts_per_token and expert_bytes are needed together: the model does not say them";
  }
}

}  // namespace

std::shared_ptr<const Geometry> override_geometry(std::shared_ptr<const Geometry> found, const TargetConfig* settings,
                                                  std::string& warning) {
  warning.clear();
  if (settings == nullptr) return found;
  const bool overridden = overrides_anything(*settings);
  if (found == nullptr && !settings->dense_bytes_per_pass) {
    if (overridden) warning = "dense_bytes_per_pass is needed where the model is not known: the geometry is left out";
    return found;
  }
  if (!overridden && settings->expert_skew == 1) return found;
  auto geometry = found == nullptr ? std::make_shared<Geometry>() : std::make_shared<Geometry>(*found);
  if (found == nullptr) geometry->kv_known = false;
  if (settings->head_bytes) {
    // The head is a part of the dense bytes.
    geometry->dense_bytes = std::max(geometry->dense_bytes - geometry->head_bytes, 0.0) + *settings->head_bytes;
    geometry->head_bytes = *settings->head_bytes;
  }
  if (settings->dense_bytes_per_pass) geometry->dense_bytes = *settings->dense_bytes_per_pass;
  override_cache(*geometry, *settings);
  if (overrides_experts(*settings)) override_experts(*geometry, *settings, warning);
  for (ExpertGroup& group : geometry->expert_groups) group.bytes_per_expert *= settings->expert_skew;
  if (overridden) geometry->source = "settings";
  return geometry;
}

}  // namespace rooflined::daemon
