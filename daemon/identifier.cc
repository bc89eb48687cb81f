#include "daemon/identifier.h"

#include "collectors/model/model_file.h"
#include "collectors/server/command_line.h"
#include "collectors/server/identify.h"
#include "collectors/server/listening_sockets.h"
#include "collectors/server/process.h"
#include "daemon/clock.h"
#include "daemon/geometry_overrides.h"
#include "daemon/hub_cache.h"
#include "daemon/model_geometry.h"
#include "metrics/base/file_start.h"
#include "metrics/base/log.h"
#include "metrics/base/utf8.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace rooflined::daemon {
namespace {

constexpr Duration kWatchEvery = std::chrono::seconds(5);
// Ollama and llama.cpp's router start a child when a request for another model comes, and have it load the model before
// they ask it anything.
constexpr Duration kChildrenEvery = std::chrono::seconds(1);
constexpr std::size_t kChildrenMax = 8;
constexpr Duration kAskAgainAfter = std::chrono::seconds(10);
// A server that starts answers late, one that loads a model later: 2 s, 8 s, 32 s, 128 s.
constexpr unsigned kAttemptsMax = 5;
constexpr Duration kRetryFirst = std::chrono::seconds(2);
constexpr std::size_t kTokenBytesMax = 4096;

std::string read_token(const std::string& path) {
  if (path.empty()) return {};
  std::string token = read_file_start(path, kTokenBytesMax);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.empty()) log::warning("{}: no token in it", path);
  return token;
}

const config::TargetConfig* settings_of(const config::Config& config, std::uint16_t port) {
  for (const config::TargetConfig& target : config.targets) {
    if (target.port == port) return &target;
  }
  return nullptr;
}

// The settings go before the server's word, and that before what its process was started with.
std::string cache_type(const config::TargetConfig* settings, const server::ServerIdentity& identity,
                       const Endpoint& endpoint) {
  if (settings != nullptr && !settings->kv_cache_type.empty()) return settings->kv_cache_type;
  if (!identity.kv_cache_type.empty()) return identity.kv_cache_type;
  return server::cache_type_of_listener(endpoint);
}

// The file or folder that is told of: a path as it is, a hub name in the caches of downloads. Absent, and a line in the
// log: it cannot be read.
std::optional<std::string> find_model(const std::string& told, bool named, const Endpoint& endpoint) {
  if (told.empty()) return std::nullopt;
  if (auto cached = find_in_hub_cache(told, endpoint)) return cached;
  if (named) return told;
  const auto found = server::locate_model(told, endpoint);
  if (found) return found->path;
  log::warning("port {}: the model file cannot be read, set `model` in its [[target]]: {}", endpoint.port,
               found.error().message());
  return std::nullopt;
}

std::shared_ptr<const Geometry> geometry_from_files(const std::string& path, const Endpoint& endpoint,
                                                    const GeometryOptions& wanted) {
  auto loaded = load_geometry(path, wanted);
  if (loaded) return std::move(*loaded);
  log::warning("port {}: {}", endpoint.port, loaded.error().message());
  return nullptr;
}

// Of the models that are loaded now the geometry, too.
std::vector<EngineFacts> engines_of(const server::ServerIdentity& told, const Endpoint& endpoint,
                                    const GeometryOptions& wanted) {
  std::vector<EngineFacts> engines;
  for (server::ListedModel& listed : server::listed_models(told)) {
    GeometryOptions of_model = wanted;
    of_model.served_bytes = listed.served->tensor_bytes;
    const auto path = find_model(listed.served->root, false, endpoint);
    EngineFacts engine{std::move(listed.label), std::move(listed.names)};
    if (path) engine.geometry = geometry_from_files(*path, endpoint, of_model);
    if (engine.geometry == nullptr) engine.geometry = told_geometry(told, *listed.served, of_model);
    engines.push_back(std::move(engine));
  }
  return engines;
}

}  // namespace

Identifier::Identifier(const config::Config& config) : config_(config) {}

Identifier::~Identifier() {
  stop();
}

void Identifier::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void Identifier::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Identifier::ask(const Endpoint& endpoint, ServerFamily family) {
  {
    const std::lock_guard lock(mutex_);
    Watched& watched = watched_[endpoint];
    watched.family = family;
    // Two builds behind one port would have us ask with every response.
    const MonotonicTime due = std::max(monotonic_now(), watched.asked_at + kAskAgainAfter);
    const bool waiting = std::any_of(questions_.begin(), questions_.end(),
                                     [&](const Question& question) { return question.endpoint == endpoint; });
    if (!waiting) questions_.push_front(Question{endpoint, family, 0, due});
  }
  wake_.notify_all();
}

void Identifier::reload(const config::Config& config) {
  std::map<Endpoint, Watched> known;
  {
    const std::lock_guard lock(mutex_);
    config_ = config;
    known = watched_;
  }
  for (const auto& [endpoint, watched] : known) ask(endpoint, watched.family);
}

std::vector<Identifier::News> Identifier::take_news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

std::vector<CollectorSnapshot> Identifier::collectors() const {
  const std::lock_guard lock(mutex_);
  std::vector<CollectorSnapshot> collectors;
  if (last_) collectors.push_back(*last_);
  return collectors;
}

void Identifier::run() {
  MonotonicTime watch_at = monotonic_now() + kWatchEvery;
  MonotonicTime children_at = monotonic_now();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const MonotonicTime now = monotonic_now();
    const auto due = std::find_if(questions_.begin(), questions_.end(),
                                  [now](const Question& question) { return question.due <= now; });
    if (due != questions_.end()) {
      const Question question = *due;
      questions_.erase(due);
      lock.unlock();
      answer(question);
      lock.lock();
      continue;
    }
    if (now >= watch_at) {
      watch_at = now + kWatchEvery;
      lock.unlock();
      watch();
      lock.lock();
      continue;
    }
    if (now >= children_at) {
      children_at = now + kChildrenEvery;
      lock.unlock();
      find_children();
      lock.lock();
      continue;
    }
    wake_.wait_for(lock, std::chrono::milliseconds(500));
  }
}

std::optional<server::ServerIdentity> Identifier::ask_server(const config::Config& config, const Question& question,
                                                             bool& answered) const {
  const config::TargetConfig* settings = settings_of(config, question.endpoint.port);
  const bool allowed = settings != nullptr && settings->identify ? *settings->identify : config.server.identify;
  if (!allowed) return std::nullopt;
  server::IdentifyOptions options;
  options.user_agent = std::string("rooflined/") + ROOFLINED_VERSION;
  const bool own_token = settings != nullptr && !settings->identify_token_file.empty();
  options.bearer_token = read_token(own_token ? settings->identify_token_file : config.server.identify_token_file);
  auto identity = server::identify(question.endpoint, question.family, options);
  answered = identity.ok();
  if (!identity) return std::nullopt;
  return std::move(*identity);
}

TargetFacts Identifier::find_facts(const config::Config& config, const Question& question, bool& answered) const {
  TargetFacts facts;
  const config::TargetConfig* settings = settings_of(config, question.endpoint.port);
  const std::optional<server::ServerIdentity> answer = ask_server(config, question, answered);
  const server::ServerIdentity told = answer.value_or(server::ServerIdentity{});
  facts.family = told.family;
  facts.version = told.version;
  facts.model = told.model_label();
  facts.several_engines = told.several_engines();
  const bool named = settings != nullptr && !settings->model.empty();
  const std::string model = named ? settings->model : told.model_path;
  GeometryOptions wanted;
  if (settings != nullptr) wanted.weight_bits = settings->weight_bits;
  if (!named && told.base_model() != nullptr) wanted.served_bytes = told.base_model()->tensor_bytes;
  wanted.kv_cache_type = cache_type(settings, told, question.endpoint);
  const bool cache_known = wanted.kv_cache_type.empty() || model::parse_kv_cache_types(wanted.kv_cache_type).ok();
  if (!cache_known) {
    log::warning(
        "port {}: the KV cache is of a type that is not known here, {}: set kv_bytes_per_token in its [[target]]",
        question.endpoint.port, to_label(wanted.kv_cache_type, 32));
    wanted.kv_cache_type.clear();
  }
  const std::optional<std::string> path = find_model(model, named, question.endpoint);
  if (path) facts.geometry = geometry_from_files(*path, question.endpoint, wanted);
  if (answer) facts.identity = server::deploy_identity(*answer, wanted.kv_cache_type, path.value_or(""));
  if (facts.geometry == nullptr) facts.geometry = told_geometry(told, wanted);
  if (facts.geometry == nullptr) facts.geometry = catalogue_geometry(model, wanted);
  if (facts.several_engines && !named) facts.engines = engines_of(told, question.endpoint, wanted);
  if (!cache_known) {
    facts.geometry = without_cache(facts.geometry);
    for (EngineFacts& engine : facts.engines) engine.geometry = without_cache(engine.geometry);
  }
  std::string warning;
  facts.geometry = override_geometry(std::move(facts.geometry), settings, warning);
  for (EngineFacts& engine : facts.engines) {
    engine.geometry = override_geometry(std::move(engine.geometry), settings, warning);
  }
  if (!warning.empty()) log::warning("port {}: {}", question.endpoint.port, warning);
  if (settings != nullptr && !settings->draft_model.empty()) {
    const GeometryOptions draft{.kv_cache_type = {}, .served_bytes = {}, .weight_bits = {}};
    const std::optional<std::string> draft_path = find_model(settings->draft_model, true, question.endpoint);
    if (draft_path) facts.draft_geometry = geometry_from_files(*draft_path, question.endpoint, draft);
    if (facts.draft_geometry == nullptr) facts.draft_geometry = catalogue_geometry(settings->draft_model, draft);
  }
  return facts;
}

void Identifier::answer(const Question& question) {
  config::Config config;
  {
    const std::lock_guard lock(mutex_);
    config = config_;
  }
  bool answered = true;
  find_moved(question.endpoint);
  const MonotonicTime asked_at = monotonic_now();
  TargetFacts facts = find_facts(config, question, answered);
  const std::uint64_t socket = server::ListeningSockets::now().inode(question.endpoint).value_or(0);
  const std::lock_guard lock(mutex_);
  Watched& watched = watched_[question.endpoint];
  watched.asked_at = asked_at;
  if (answered) watched.several_engines = facts.several_engines;
  // From now on another one is another server, whether or not watch() saw this one.
  if (watched.inode == 0) watched.inode = socket;
  last_ = CollectorSnapshot{"server", answered, to_seconds(monotonic_now() - asked_at)};
  News news{question.endpoint, std::move(facts), std::nullopt};
  if (socket != 0) news.socket = socket;
  news_.push_back(std::move(news));
  if (answered || question.attempt + 1 >= kAttemptsMax) return;
  Question again = question;
  ++again.attempt;
  again.due = monotonic_now() + kRetryFirst * (1 << (2 * question.attempt));
  questions_.push_back(again);
}

// A server appeared on a port on which another address, out of sight in a namespace of its own, may be gone: a
// container that was replaced.
void Identifier::find_moved(const Endpoint& endpoint) {
  constexpr std::chrono::milliseconds kConnectTimeout{500};
  std::vector<Endpoint> others;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, watched] : watched_) {
      if (other.port == endpoint.port && other != endpoint && watched.inode == 0 && watched.up) others.push_back(other);
    }
  }
  for (const Endpoint& other : others) {
    if (server::accepts_connections(other, kConnectTimeout)) continue;
    const std::lock_guard lock(mutex_);
    watched_.erase(other);
    news_.push_back(News{other, std::nullopt, false});
  }
}

void Identifier::find_children() {
  const std::lock_guard lock(mutex_);
  std::optional<server::ListeningSockets> listeners;
  for (auto& [endpoint, watched] : watched_) {
    const bool may_have = watched.several_engines || watched.family == ServerFamily::kOllama;
    if (!may_have && watched.child_ports.empty()) continue;
    if (!listeners) listeners = server::ListeningSockets::now();
    std::vector<std::uint16_t> ports;
    if (may_have) ports = listeners->child_ports(endpoint, kChildrenMax);
    if (ports == watched.child_ports) continue;
    watched.child_ports = ports;
    // Another model was loaded, or one was unloaded. It answers when it has come up.
    if (watched.asked_at != MonotonicTime{}) {
      questions_.push_back(Question{endpoint, watched.family, 0, monotonic_now() + kAskAgainAfter});
    }
    News news{endpoint, std::nullopt, std::nullopt};
    news.child_ports = std::move(ports);
    news_.push_back(std::move(news));
  }
}

// In a rolling update the old server still answered when the new one was found.
void Identifier::find_overlapped() {
  std::vector<Endpoint> recent;
  {
    const std::lock_guard lock(mutex_);
    const MonotonicTime since = monotonic_now() - Targets::kOverlapMax - kWatchEvery;
    for (const auto& [endpoint, watched] : watched_) {
      if (watched.asked_at > since) recent.push_back(endpoint);
    }
  }
  for (const Endpoint& endpoint : recent) find_moved(endpoint);
}

void Identifier::watch() {
  find_overlapped();
  const server::ListeningSockets listeners = server::ListeningSockets::now();
  const std::lock_guard lock(mutex_);
  for (auto& [endpoint, watched] : watched_) {
    const std::uint64_t inode = listeners.inode(endpoint).value_or(0);
    const bool visible = watched.inode != 0 || inode != 0;
    const bool up = inode != 0 || !visible;
    // Another socket on the same port is another server, or the same one started again.
    const bool restarted = watched.inode != 0 && inode != 0 && inode != watched.inode;
    if (up != watched.up || inode != watched.inode) {
      News news{endpoint, std::nullopt, up, restarted};
      if (inode != 0) news.socket = inode;
      news_.push_back(std::move(news));
    }
    if (restarted && watched.up) questions_.push_back(Question{endpoint, watched.family, 0, monotonic_now()});
    watched.up = up;
    if (inode != 0) watched.inode = inode;
  }
}

}  // namespace rooflined::daemon
