// What a scrape shows of the targets: their books, which memory they read, who is a proxy.

#include "daemon/targets.h"

#include <algorithm>

namespace rooflined::daemon {
namespace {

// Families that hold their weights in GPU memory unless the settings say otherwise (design.md §3 "Bandwidth").
bool lives_on_gpu(ServerFamily family) {
  switch (family) {
    case ServerFamily::kVllm:
    case ServerFamily::kSglang:
    case ServerFamily::kTgi:
    case ServerFamily::kTensorRtLlm:
    case ServerFamily::kLmDeploy:
    case ServerFamily::kAphrodite:
    case ServerFamily::kMlc:
      return true;
    default:
      return false;
  }
}

// What follows from how many sequences share a pass.
void hide_passes(WindowSnapshot& window) {
  window.mbu_ratio.reset();
  window.decode_bandwidth_ratio.reset();
  window.decode_bytes_per_second.reset();
  window.tokens_per_second_bound.reset();
  window.batch_size.reset();
}

void hide_passes(TargetSnapshot& snapshot) {
  for (WindowSnapshot& window : snapshot.windows) hide_passes(window);
  if (snapshot.live) hide_passes(*snapshot.live);
}

}  // namespace

Device Targets::device_of(const Target& target) const {
  if (target.settings.device != Device::kAuto) return target.settings.device;
  if (lives_on_gpu(target.family)) return Device::kGpu;
  return options_.gpu_present ? Device::kAuto : Device::kCpu;
}

// Of the nodes that the engine is pinned to; the whole machine's where one of them was not measured.
std::optional<BytesPerSecond> Targets::ram_bandwidth_of(const Target& target,
                                                        std::optional<BytesPerSecond> ceiling) const {
  const std::vector<int>& pinned = target.settings.numa_nodes;
  BytesPerSecond sum = 0;
  std::size_t found = 0;
  for (const ceiling::NodeResult& node : memory_nodes_) {
    if (std::find(pinned.begin(), pinned.end(), node.node) == pinned.end()) continue;
    sum += node.best;
    ++found;
  }
  return found > 0 && found == pinned.size() ? std::optional(sum) : ceiling;
}

BytesPerSecond Targets::ram_decode_rate() const {
  constexpr Duration kSpan = std::chrono::seconds(10);
  BytesPerSecond sum = 0;
  for (const auto& [endpoint, target] : targets_) {
    if (device_of(*target) != Device::kCpu || target->is_proxy()) continue;
    sum += target->books->decode_rate(kSpan).value_or(0);
    for (const ModelBooks& one : target->further) sum += one.books->decode_rate(kSpan).value_or(0);
  }
  return sum;
}

std::optional<BytesPerSecond> Targets::bandwidth_of(const Target& target, std::optional<BytesPerSecond> ceiling) const {
  switch (device_of(target)) {
    case Device::kCpu:
      return ram_bandwidth_of(target, ceiling);
    case Device::kGpu:
      return target.settings.gpu_bandwidth;
    case Device::kAuto:
      return std::nullopt;
  }
  return std::nullopt;
}

bool Targets::ram_bound_exists() const {
  return std::any_of(targets_.begin(), targets_.end(),
                     [this](const auto& entry) { return device_of(*entry.second) == Device::kCpu; });
}

TargetSnapshot Targets::snapshot_of(const Target& target, const std::string& model, const EngineBooks& books,
                                    std::optional<BytesPerSecond> ceiling) const {
  TargetSnapshot snapshot = books.snapshot(target.is_proxy() ? std::nullopt : bandwidth_of(target, ceiling));
  snapshot.target = target.name;
  snapshot.server = family_name(target.family);
  snapshot.version = target.version;
  snapshot.model = model;
  snapshot.port = target.endpoint.port;
  snapshot.memory = device_of(target) == Device::kGpu ? "gpu" : "ram";
  snapshot.up = !target.gone_since;
  snapshot.configured = target.settings.port != 0;
  snapshot.replicas = books.replicas();
  if (!snapshot.up) {
    snapshot.windows.clear();
    snapshot.live.reset();
    snapshot.caveats.clear();
    snapshot.bandwidth.reset();
  } else if (device_of(target) == Device::kAuto) {
    snapshot.caveats.emplace_back("offload");
  } else if (device_of(target) == Device::kCpu && !target.settings.numa_nodes.empty()) {
    snapshot.caveats.emplace_back("numa_bound");
  }
  if (is_mixed(target, model)) hide_passes(snapshot);
  show_role(target, snapshot);
  show_share(snapshot);
  return snapshot;
}

// A proxy reads no weights: of what it answers without an engine of this host it shows tokens and times only.
void Targets::show_role(const Target& target, TargetSnapshot& snapshot) const {
  snapshot.proxied_requests = target.proxied_requests;
  snapshot.proxied_tokens = target.proxied_tokens;
  if (!target.is_proxy()) return;
  snapshot.proxy = true;
  const auto alias = aliases_.find(*target.engine);
  const auto engine = targets_.find(alias == aliases_.end() ? *target.engine : alias->second);
  if (engine != targets_.end()) snapshot.engine = engine->second->name;
  snapshot.caveats.clear();
  snapshot.geometry.reset();
  hide_passes(snapshot);
  for (WindowSnapshot& window : snapshot.windows) window.context_tokens.reset();
  if (snapshot.live) snapshot.live->context_tokens.reset();
}

// With flows left out, rates are scaled by the share, and what hangs on all sequences being seen is absent.
void Targets::show_share(TargetSnapshot& snapshot) const {
  if (!snapshot.up) return;
  bool sampled = share_.one_in() > 1;
  const auto scale = [&](WindowSnapshot& window, Duration span) {
    const double share = share_.over(span, now_);
    if (share >= 1) return;
    sampled = true;
    window.tokens_per_second /= share;
    hide_passes(window);
  };
  for (WindowSnapshot& window : snapshot.windows) {
    const auto span = std::find_if(options_.windows.begin(), options_.windows.end(),
                                   [&](const WindowSpan& each) { return each.name == window.window; });
    scale(window, span->span);
  }
  if (snapshot.live) scale(*snapshot.live, options_.live->span);
  if (sampled) snapshot.caveats.emplace_back("sampled");
}

TargetSnapshot Targets::retired_snapshot(const Target& target, const ModelBooks& retired) {
  TargetSnapshot snapshot = retired.books->snapshot(std::nullopt);
  snapshot.target = target.name;
  snapshot.server = family_name(target.family);
  snapshot.model = retired.model;
  snapshot.port = target.endpoint.port;
  snapshot.further = snapshot.retired = true;
  snapshot.up = false;
  snapshot.windows.clear();
  snapshot.live.reset();
  snapshot.caveats.clear();
  snapshot.geometry.reset();
  return snapshot;
}

std::vector<TargetSnapshot> Targets::snapshots(std::optional<BytesPerSecond> ceiling) const {
  std::vector<TargetSnapshot> snapshots;
  for (const auto& [endpoint, target] : targets_) {
    if (target->name.empty()) continue;
    snapshots.push_back(snapshot_of(*target, ceiling));
    for (const ModelBooks& one : target->further) {
      TargetSnapshot further = snapshot_of(*target, one.model, *one.books, ceiling);
      further.further = true;
      // Of those that were all passed on to a child there is nothing to show.
      const bool used = further.output_tokens > 0 || further.exchanges_in_flight > 0 ||
                        further.requests != decltype(further.requests){};
      if (used) snapshots.push_back(std::move(further));
    }
    for (auto retired = target->retired.rbegin(); retired != target->retired.rend(); ++retired) {
      snapshots.push_back(retired_snapshot(*target, *retired));
    }
  }
  std::stable_sort(snapshots.begin(), snapshots.end(),
                   [](const TargetSnapshot& a, const TargetSnapshot& b) { return a.target < b.target; });
  return snapshots;
}

std::vector<NodeRatioSnapshot> Targets::node_ratios(const std::vector<TargetSnapshot>& targets) {
  std::vector<NodeRatioSnapshot> ratios;
  for (const TargetSnapshot& target : targets) {
    // What the caches serve is no load on the memory.
    const bool from_cache =
        std::find(target.caveats.begin(), target.caveats.end(), "cache_assisted") != target.caveats.end();
    for (const WindowSnapshot& window : target.windows) {
      if (!window.decode_bandwidth_ratio || from_cache) continue;
      const auto same = std::find_if(ratios.begin(), ratios.end(), [&](const NodeRatioSnapshot& ratio) {
        return ratio.window == window.window && ratio.memory == target.memory;
      });
      if (same != ratios.end()) {
        same->ratio += *window.decode_bandwidth_ratio;
      } else {
        ratios.push_back(NodeRatioSnapshot{window.window, target.memory, *window.decode_bandwidth_ratio});
      }
    }
  }
  return ratios;
}

std::vector<Targets::Running> Targets::running() {
  std::vector<Running> all;
  for (const auto& [endpoint, target] : targets_) {
    if (target->name.empty()) continue;
    Running one;
    one.endpoint = endpoint;
    one.name = target->name;
    one.family = target->family;
    one.model = target->model;
    one.port = port_of(*target);
    one.up = !target->gone_since;
    one.proxy = target->is_proxy();
    one.gpu = device_of(*target) == Device::kGpu;
    one.sampled = share_.over(2 * DeploySlices::kSpan, now_) < 1;
    one.restarts = target->restarts;
    one.answers = target->answers;
    one.socket = target->socket;
    one.identity = target->identity;
    one.identity.wire = target->word.settled();
    one.wire_since = target->word.settled_since();
    one.books = target->books.get();
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<Targets::Unshown> Targets::unshown() {
  std::vector<Unshown> all;
  for (const auto& [endpoint, target] : targets_) {
    if (target->is_proxy()) continue;
    const bool gpu = device_of(*target) == Device::kGpu;
    if (target->name.empty()) all.push_back(Unshown{gpu, target->books.get()});
    for (const ModelBooks& one : target->further) all.push_back(Unshown{gpu, one.books.get()});
  }
  return all;
}

std::vector<Targets::View> Targets::views(std::optional<BytesPerSecond> ceiling) const {
  std::vector<View> views;
  for (const auto& [endpoint, target] : targets_) {
    views.push_back(View{snapshot_of(*target, ceiling), *target->books, endpoint});
  }
  return views;
}

}  // namespace rooflined::daemon
