#include "daemon/targets.h"

#include "metrics/base/log.h"
#include "metrics/base/utf8.h"

#include <algorithm>
#include <set>
#include <utility>

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

// "/models/m.gguf" and "org/name" are shown by their last component.
std::string last_component(const std::string& name) {
  const std::size_t slash = name.find_last_of('/');
  return to_label(slash == std::string::npos ? name : name.substr(slash + 1));
}

}  // namespace

Targets::Targets(const Options& options, std::function<void(const Found&)> on_found,
                 std::function<RecordObserver*(const Endpoint&)> observer_for)
    : options_(options), on_found_(std::move(on_found)), observer_for_(std::move(observer_for)) {}

void Targets::on_begin(const ExchangeBegin& begin) {
  const auto known = targets_.find(begin.server);
  if (known == targets_.end()) {
    waiting_.emplace(begin.exchange, begin);
    return;
  }
  owner_.emplace(begin.exchange, known->second.get());
  known->second->books->begin(begin);
}

void Targets::on_recognised(ExchangeId exchange, ServerFamily family, std::string_view version) {
  const auto waiting = waiting_.find(exchange);
  if (waiting != waiting_.end()) {
    const ExchangeBegin begin = waiting->second;
    waiting_.erase(waiting);
    Target* added = find_or_add(begin.server, family, begin.at);
    if (added == nullptr) {
      ++exchanges_refused_;
      return;
    }
    owner_.emplace(exchange, added);
    added->books->begin(begin);
  }
  Target* target = target_of(exchange);
  if (target == nullptr) return;
  if (family != ServerFamily::kUnknown && target->family == ServerFamily::kUnknown) target->family = family;
  if (!version.empty() && target->version != version) {
    const bool restarted = !target->version.empty();
    target->version = to_label(version);
    // Another build answers on the same port: ask again who it is.
    if (restarted && on_found_) on_found_(Found{target->endpoint, target->family});
  }
}

Targets::Target* Targets::find_or_add(const Endpoint& endpoint, ServerFamily family, LineTime now) {
  const auto known = targets_.find(endpoint);
  if (known != targets_.end()) return known->second.get();
  if (targets_.size() >= options_.targets_max) return nullptr;
  auto target = std::make_unique<Target>();
  target->endpoint = endpoint;
  target->family = family;
  target->began = now;
  target->model = "unknown";
  target->settings = settings_of(endpoint.port);
  EngineBooks::Options books;
  books.windows = options_.windows;
  books.ledger.replicas = target->settings.replicas * target->settings.pipeline_parallel;
  books.ledger.speculates = target->settings.speculates;
  target->books = std::make_unique<EngineBooks>(books, now, observer_for_ ? observer_for_(endpoint) : nullptr);
  Target* added = targets_.emplace(endpoint, std::move(target)).first->second.get();
  // Requests of other connections to the same server wait for their first frame, too.
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->second.server == endpoint) {
      owner_.emplace(it->first, added);
      added->books->begin(it->second);
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  if (on_found_) on_found_(Found{endpoint, family});
  return added;
}

Targets::Target* Targets::target_of(ExchangeId exchange) {
  const auto owner = owner_.find(exchange);
  return owner == owner_.end() ? nullptr : owner->second;
}

void Targets::on_tokens(const TokenEvent& event) {
  if (Target* target = target_of(event.exchange)) target->books->tokens(event);
}

void Targets::on_prompt_tokens(ExchangeId exchange, std::uint64_t tokens, LineTime at) {
  if (Target* target = target_of(exchange)) target->books->prompt_tokens(exchange, tokens, at);
}

void Targets::on_loss(ExchangeId exchange, LineTime at) {
  if (Target* target = target_of(exchange)) target->books->loss(exchange, at);
}

void Targets::on_end(const ExchangeEnd& end) {
  waiting_.erase(end.exchange);
  const auto owner = owner_.find(end.exchange);
  if (owner == owner_.end()) return;
  owner->second->books->end(end);
  owner_.erase(owner);
}

void Targets::advance_to(LineTime now) {
  for (auto it = targets_.begin(); it != targets_.end();) {
    Target& target = *it->second;
    target.books->advance_to(now);
    if (target.name.empty() && (target.asked || now - target.began > options_.identity_wait)) name(target);
    const bool forgotten = target.gone_since && now - *target.gone_since > options_.forget_after &&
                           target.books->exchanges_in_flight() == 0;
    it = forgotten ? targets_.erase(it) : std::next(it);
  }
}

void Targets::finish() {
  for (auto& [endpoint, target] : targets_) {
    target->books->finish();
    if (target->name.empty()) name(*target);
  }
}

void Targets::lose_everywhere(LineTime at) {
  for (auto& [endpoint, target] : targets_) target->books->loss_everywhere(at);
}

void Targets::name(Target& target) {
  std::set<std::string> taken;
  for (const auto& [endpoint, other] : targets_) taken.insert(other->name);
  const std::string base = !target.settings.name.empty()
                               ? target.settings.name
                               : std::string(family_name(target.family)) + "-" + std::to_string(target.endpoint.port);
  target.name = base;
  for (int suffix = 2; taken.contains(target.name); ++suffix) target.name = base + "-" + std::to_string(suffix);
  log::info("target {}: {} {}, model {}", target.name, family_name(target.family),
            target.version.empty() ? "of unknown version" : target.version, target.model);
}

void Targets::learn(const Endpoint& endpoint, const TargetFacts& facts) {
  const auto known = targets_.find(endpoint);
  if (known == targets_.end()) return;
  Target& target = *known->second;
  target.asked = true;
  if (facts.family != ServerFamily::kUnknown) target.family = facts.family;
  if (!facts.version.empty()) target.version = to_label(facts.version);
  if (!facts.model.empty()) target.model = last_component(facts.model);
  if (facts.geometry != nullptr) target.books->set_geometry(facts.geometry);
}

void Targets::set_up(const Endpoint& endpoint, bool up, LineTime now) {
  const auto known = targets_.find(endpoint);
  if (known == targets_.end()) return;
  Target& target = *known->second;
  if (up == !target.gone_since.has_value()) return;
  log::info("target {}: {}", target.name, up ? "is back" : "is gone: nothing listens on its port");
  target.gone_since = up ? std::nullopt : std::optional<LineTime>(now);
  if (up && on_found_) on_found_(Found{endpoint, target.family});
}

TargetSettings Targets::settings_of(std::uint16_t port) const {
  for (const TargetSettings& settings : options_.settings) {
    if (settings.port == port) return settings;
  }
  return TargetSettings();
}

void Targets::set_settings(const std::vector<TargetSettings>& settings) {
  options_.settings = settings;
  for (auto& [endpoint, target] : targets_) target->settings = settings_of(endpoint.port);
}

Device Targets::device_of(const Target& target) const {
  if (target.settings.device != Device::kAuto) return target.settings.device;
  if (lives_on_gpu(target.family)) return Device::kGpu;
  return options_.gpu_present ? Device::kAuto : Device::kCpu;
}

std::optional<BytesPerSecond> Targets::bandwidth_of(const Target& target, std::optional<BytesPerSecond> ceiling) const {
  switch (device_of(target)) {
    case Device::kCpu:
      return ceiling;
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

std::vector<Endpoint> Targets::endpoints() const {
  std::vector<Endpoint> endpoints;
  for (const auto& [endpoint, target] : targets_) endpoints.push_back(endpoint);
  return endpoints;
}

TargetSnapshot Targets::snapshot_of(const Target& target, std::optional<BytesPerSecond> ceiling) const {
  TargetSnapshot snapshot = target.books->snapshot(bandwidth_of(target, ceiling));
  snapshot.target = target.name;
  snapshot.server = family_name(target.family);
  snapshot.version = target.version;
  snapshot.model = target.model;
  snapshot.port = target.endpoint.port;
  snapshot.memory = device_of(target) == Device::kGpu ? "gpu" : "ram";
  snapshot.up = !target.gone_since;
  if (!snapshot.up) {
    snapshot.windows.clear();
    snapshot.caveats.clear();
    snapshot.bandwidth.reset();
  } else if (device_of(target) == Device::kAuto) {
    snapshot.caveats.emplace_back("offload");
  }
  return snapshot;
}

std::vector<TargetSnapshot> Targets::snapshots(std::optional<BytesPerSecond> ceiling) const {
  std::vector<TargetSnapshot> snapshots;
  for (const auto& [endpoint, target] : targets_) {
    if (!target->name.empty()) snapshots.push_back(snapshot_of(*target, ceiling));
  }
  std::sort(snapshots.begin(), snapshots.end(),
            [](const TargetSnapshot& a, const TargetSnapshot& b) { return a.target < b.target; });
  return snapshots;
}

std::vector<NodeRatioSnapshot> Targets::node_ratios(const std::vector<TargetSnapshot>& targets) {
  std::vector<NodeRatioSnapshot> ratios;
  for (const TargetSnapshot& target : targets) {
    for (const WindowSnapshot& window : target.windows) {
      if (!window.decode_bandwidth_ratio) continue;
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

std::vector<Targets::View> Targets::views(std::optional<BytesPerSecond> ceiling) const {
  std::vector<View> views;
  for (const auto& [endpoint, target] : targets_) {
    views.push_back(View{snapshot_of(*target, ceiling), *target->books, endpoint});
  }
  return views;
}

}  // namespace rooflined::daemon
