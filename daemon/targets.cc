#include "daemon/targets.h"

#include "metrics/base/log.h"
#include "metrics/base/utf8.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace rooflined::daemon {

Targets::Targets(const Options& options, std::function<void(const Found&)> on_found,
                 std::function<RecordObserver*(const Endpoint&)> observer_for)
    : options_(options), on_found_(std::move(on_found)), observer_for_(std::move(observer_for)) {}

void Targets::on_begin(const ExchangeBegin& begin) {
  if (Target* target = find(begin.server)) {
    join(begin.exchange, *target, begin);
  } else {
    waiting_.emplace(begin.exchange, begin);
  }
}

// A request came through. Where its socket is seen, that says all there is to say.
void Targets::note_alive(Target& target) {
  if (target.socket != 0 || (!target.refused && !target.gone_since)) return;
  target.refused = target.superseded = false;
  target.gone_since.reset();
  ++target.restarts;
  if (on_found_) on_found_(Found{target.endpoint, target.family});
}

void Targets::join(ExchangeId exchange, Target& target, const ExchangeBegin& begin) {
  if (!begin.joined_late) note_alive(target);
  EngineBooks& books = books_for(target, begin);
  owner_.emplace(exchange, Owner{&target, &books});
  books.begin(begin);
}

Targets::Target* Targets::find(const Endpoint& seen) {
  const auto alias = aliases_.find(seen);
  const auto known = targets_.find(alias == aliases_.end() ? seen : alias->second);
  return known == targets_.end() ? nullptr : known->second.get();
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
    join(exchange, *added, begin);
  }
  const auto owner = owner_.find(exchange);
  if (owner == owner_.end()) return;
  Target* target = owner->second.target;
  if (family != ServerFamily::kUnknown && target->family == ServerFamily::kUnknown) target->family = family;
  if (!version.empty()) note_word(*target, exchange, version);
}

void Targets::note_word(Target& target, ExchangeId exchange, std::string_view word) {
  switch (target.word.take(exchange, word, now_)) {
    case BuildWord::News::kNone:
      break;
    case BuildWord::News::kFirst:
      if (target.version.empty()) target.version = to_label(word);
      break;
    case BuildWord::News::kOther:
      target.version = to_label(word);
      // Another build answers on the same port: ask again who it is.
      if (on_found_) on_found_(Found{target.endpoint, target.family});
      break;
    case BuildWord::News::kDrawn:
      target.version = target.identity.version;
      break;
  }
}

Targets::Target* Targets::find_or_add(const Endpoint& endpoint, ServerFamily family, LineTime now) {
  if (Target* known = find(endpoint)) return known;
  for (const auto& [other, known] : targets_) {
    constexpr std::size_t kAliasesMax = 1024;
    if (other.port != endpoint.port || !options_.same_listener || aliases_.size() >= kAliasesMax) continue;
    if (!options_.same_listener(other, endpoint)) continue;
    aliases_.emplace(endpoint, other);
    return known.get();
  }
  if (targets_.size() >= options_.targets_max) return nullptr;
  auto target = std::make_unique<Target>();
  target->endpoint = endpoint;
  target->family = family;
  target->began = now;
  target->model = kUnknownModel;
  target->settings = settings_of(endpoint.port);
  target->books = new_books(*target, now);
  Target* added = targets_.emplace(endpoint, std::move(target)).first->second.get();
  // Requests of other connections to the same server wait for their first frame, too.
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->second.server == endpoint) {
      join(it->first, *added, it->second);
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  if (on_found_) on_found_(Found{endpoint, family});
  return added;
}

std::unique_ptr<EngineBooks> Targets::new_books(const Target& target, LineTime now) {
  EngineBooks::Options books;
  books.windows = options_.windows;
  books.live = options_.live;
  books.ledger.replicas = target.settings.replicas * target.settings.pipeline_parallel;
  books.ledger.speculates = target.settings.speculates;
  return std::make_unique<EngineBooks>(books, now, observer_for_ ? observer_for_(target.endpoint) : nullptr);
}

EngineBooks* Targets::books_of(ExchangeId exchange) {
  const auto owner = owner_.find(exchange);
  return owner == owner_.end() ? nullptr : owner->second.books;
}

void Targets::on_tokens(const TokenEvent& event) {
  if (EngineBooks* books = books_of(event.exchange)) books->tokens(event);
}

void Targets::on_prompt_tokens(ExchangeId exchange, std::uint64_t tokens, LineTime at) {
  if (EngineBooks* books = books_of(exchange)) books->prompt_tokens(exchange, tokens, at);
}

void Targets::on_response_id(ExchangeId, std::uint64_t, LineTime) {}

void Targets::on_client_window(ExchangeId exchange, bool closed, LineTime at) {
  if (EngineBooks* books = books_of(exchange)) books->client_window(exchange, closed, at);
}

void Targets::on_loss(ExchangeId exchange, double tokens, LineTime at) {
  if (EngineBooks* books = books_of(exchange)) books->loss(exchange, tokens, at);
}

void Targets::on_end(const ExchangeEnd& end) {
  waiting_.erase(end.exchange);
  const auto owner = owner_.find(end.exchange);
  if (owner == owner_.end()) return;
  constexpr double kOwnWeight = 0.1;
  Target& target = *owner->second.target;
  if (end.outcome == Outcome::kOk) target.proxied_share *= 1 - kOwnWeight;
  owner->second.books->end(end);
  if (end.outcome == Outcome::kOk) ask_for_model(target, *owner->second.books);
  owner_.erase(owner);
}

void Targets::on_proxied(ExchangeId exchange, const Endpoint& proxy, const Endpoint& engine) {
  const auto owner = owner_.find(exchange);
  if (owner != owner_.end()) {
    owner->second.books->forget(exchange, now_);
    owner_.erase(owner);
  }
  Target* target = find(proxy);
  if (target == nullptr) return;
  if (!target->is_proxy()) log::info("port {} is a proxy of port {}: its streams count there", proxy.port, engine.port);
  target->engine = engine;
  target->proxied_share = 1;
  ++target->proxied_requests;
}

void Targets::on_proxied_tokens(const Endpoint& proxy, std::uint64_t tokens) {
  if (Target* target = find(proxy)) target->proxied_tokens += tokens;
}

void Targets::set_child_ports(std::uint16_t parent, const std::vector<std::uint16_t>& ports) {
  constexpr std::size_t kParentsMax = 1024;
  if (parents_.size() >= kParentsMax) parents_.clear();
  // Those of children that are gone stay: their targets may still be there.
  for (const std::uint16_t port : ports) parents_[port] = parent;
}

bool Targets::knows(const Endpoint& server) {
  return find(server) != nullptr || std::any_of(waiting_.begin(), waiting_.end(),
                                                [&](const auto& waiting) { return waiting.second.server == server; });
}

// Several addresses may be one target's.
LineTime Targets::books_until(const Target& target, LineTime now, const std::map<Endpoint, LineTime>& held_back) {
  LineTime until = now;
  for (const auto& [server, since] : held_back) {
    if (find(server) == &target) until = std::min(until, since);
  }
  return until;
}

void Targets::advance_to(LineTime now, const std::map<Endpoint, LineTime>& held_back) {
  now_ = now;
  for (auto it = targets_.begin(); it != targets_.end();) {
    Target& target = *it->second;
    const LineTime until = held_back.empty() ? now : books_until(target, now, held_back);
    for_all_books(target, [until](EngineBooks& books) { books.advance_to(until); });
    forget_unused(target, now);
    const bool known = target.asked || now - target.began > options_.identity_wait;
    if (target.name.empty() && !target.superseded && known && !may_succeed(target)) name(target);
    const Duration forget_after = parents_.contains(target.endpoint.port) ? Duration{0} : options_.forget_after;
    const bool over = target.superseded || (target.gone_since && now - *target.gone_since > forget_after);
    const bool forgotten = over && in_flight(target) == 0 && target.retired.empty();
    if (forgotten) std::erase_if(aliases_, [&](const auto& alias) { return alias.second == target.endpoint; });
    it = forgotten ? targets_.erase(it) : std::next(it);
  }
}

void Targets::finish() {
  for (auto& [endpoint, target] : targets_) {
    for_all_books(*target, [](EngineBooks& books) { books.finish(); });
    if (target->name.empty() && !target->superseded) name(*target);
  }
}

void Targets::lose_everywhere(LineTime at) {
  for (auto& [endpoint, target] : targets_) {
    for_all_books(*target, [at](EngineBooks& books) { books.loss_everywhere(at); });
  }
}

std::uint16_t Targets::port_of(const Target& target) const {
  const auto parent = parents_.find(target.endpoint.port);
  return parent == parents_.end() ? target.endpoint.port : parent->second;
}

bool Targets::same_kind(const Target& one, const Target& other) const {
  const bool other_model = other.model != kUnknownModel && one.model != kUnknownModel && other.model != one.model;
  // A router and its children are of one family, too.
  const bool one_is_child = parents_.contains(one.endpoint.port) != parents_.contains(other.endpoint.port);
  return &one != &other && port_of(other) == port_of(one) && other.family == one.family && !other_model &&
         !one_is_child;
}

// A server of the same kind that is gone from another address: a new container, or a new child, in its place.
Targets::Target* Targets::predecessor_of(const Target& target) const {
  for (const auto& [endpoint, other] : targets_) {
    if (same_kind(target, *other) && other->gone_since && !other->name.empty()) return other.get();
  }
  return nullptr;
}

// A new server beside one of the same kind that has run for a while, as in a rolling update: in a moment that one is
// gone, and this one bears its name; or there are two.
bool Targets::may_succeed(const Target& target) const {
  constexpr Duration kKnownFor = std::chrono::seconds(15);
  if (now_ - target.began > kOverlapMax || predecessor_of(target) != nullptr) return false;
  return std::any_of(targets_.begin(), targets_.end(), [&](const auto& entry) {
    const Target& other = *entry.second;
    return same_kind(target, other) && !other.name.empty() && !other.is_proxy() &&
           target.began - other.began > kKnownFor;
  });
}

void Targets::name(Target& target) {
  if (Target* predecessor = predecessor_of(target)) {
    log::info("target {}: is back at another address", predecessor->name);
    target.name = std::exchange(predecessor->name, std::string());
    predecessor->superseded = true;
    return;
  }
  std::set<std::string> taken;
  for (const auto& [endpoint, other] : targets_) taken.insert(other->name);
  const std::string base = !target.settings.name.empty()
                               ? target.settings.name
                               : std::string(family_name(target.family)) + "-" + std::to_string(port_of(target));
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
  if (facts.identity || !facts.engines.empty()) learn_engines(target, facts.engines);
  if (target.engines.empty()) learn_model(target, facts.model);
  if (facts.identity) {
    target.identity = *facts.identity;
    ++target.answers;
  }
  if (facts.geometry != nullptr && target.engines.empty()) target.books->set_geometry(facts.geometry);
  if (facts.draft_geometry != nullptr) target.books->set_draft_geometry(facts.draft_geometry);
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

void Targets::set_restarted(const Endpoint& endpoint) {
  const auto known = targets_.find(endpoint);
  if (known != targets_.end()) ++known->second->restarts;
}

void Targets::set_refused(const Endpoint& endpoint) {
  Target* target = find(endpoint);
  // A server that answers others, and refuses some, runs: a full backlog, a packet filter.
  if (target != nullptr && target->socket == 0 && in_flight(*target) == 0) target->refused = true;
}

void Targets::set_socket(const Endpoint& endpoint, std::uint64_t inode) {
  const auto known = targets_.find(endpoint);
  if (known != targets_.end()) known->second->socket = inode;
}

TargetSettings Targets::settings_of(std::uint16_t port) const {
  for (const TargetSettings& settings : options_.settings) {
    if (settings.port == port) return settings;
  }
  const auto parent = parents_.find(port);
  if (parent == parents_.end() || parents_.contains(parent->second)) return TargetSettings();
  // A child reads the memory that its parent is said to; it comes and goes as models do, and has no name of its own.
  const TargetSettings of_parent = settings_of(parent->second);
  TargetSettings settings;
  settings.device = of_parent.device;
  settings.gpu_bandwidth = of_parent.gpu_bandwidth;
  settings.numa_nodes = of_parent.numa_nodes;
  return settings;
}

void Targets::set_settings(const std::vector<TargetSettings>& settings) {
  options_.settings = settings;
  for (auto& [endpoint, target] : targets_) target->settings = settings_of(endpoint.port);
}

}  // namespace rooflined::daemon
