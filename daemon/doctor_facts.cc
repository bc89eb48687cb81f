#include "daemon/doctor_facts.h"

#include "collectors/ceiling/caches.h"
#include "collectors/ceiling/working_set.h"
#include "collectors/server/identify.h"
#include "collectors/server/listening_sockets.h"
#include "collectors/server/process.h"
#include "collectors/tap/local_host.h"
#include "collectors/tap/packet_source.h"
#include "config/reader.h"
#include "daemon/exposure.h"
#include "daemon/hub_cache.h"
#include "daemon/json_member.h"
#include "daemon/settings.h"
#include "metrics/base/ip_address.h"
#include "metrics/export/listen_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace rooflined::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMappedPrefix = 12;

void settings(const DoctorOptions& options, config::Config& config, DoctorFacts& facts) {
  facts.settings_path = options.settings_path;
  config::ConfigResult result = config::read_config_file(options.settings_path);
  if (result.missing && !options.settings_named) {
    facts.settings_path += " (not there: the defaults hold)";
    return;
  }
  for (const config::ConfigError& error : result.errors)
    facts.settings_errors.push_back(error.text(options.settings_path));
  if (result.errors.empty()) config = std::move(result.config);
}

void interface(const DoctorOptions& options, const config::Config& config, DoctorFacts& facts) {
  facts.interface = config.capture.interface;
  if (facts.interface == "any") return;
  const fs::path folder = fs::path(options.root) / "sys/class/net" / facts.interface;
  std::error_code ignored;
  facts.interface_there = fs::exists(folder, ignored);
  std::ifstream flags(folder / "flags");
  unsigned bits = 0;
  constexpr unsigned kUp = 1;  // IFF_UP of linux/if.h
  if (flags >> std::hex >> bits) facts.interface_up = (bits & kUp) != 0;
}

// The daemon's own word goes before a try of ours: it may have a privilege that we lack.
void capture(const config::Config& config, DoctorFacts& facts) {
  if (facts.state != nullptr) {
    for (const json& collector : member(*facts.state, "collectors")) {
      if (text_of(collector, "name") == "capture" && is_true(collector, "up")) return;
    }
  }
  if (!facts.interface_there || !facts.interface_up) return;
  const auto source = tap::open_live(live_options(config));
  if (!source) facts.capture_error = source.error().message();
}

std::optional<Endpoint> endpoint_of(const metrics_export::ListenAddress& listen) {
  Endpoint endpoint;
  endpoint.port = listen.port;
  const bool any = listen.host.empty() || listen.host == "0.0.0.0" || listen.host == "::";
  const std::string host = any || listen.host == "localhost" ? "127.0.0.1" : listen.host;
  if (inet_pton(AF_INET, host.c_str(), endpoint.address.data() + kMappedPrefix) == 1) {
    endpoint.address[10] = endpoint.address[11] = 0xFF;
    return endpoint;
  }
  if (inet_pton(AF_INET6, host.c_str(), endpoint.address.data()) == 1) return endpoint;
  return std::nullopt;
}

void daemon_state(const config::Config& config, GatheredFacts& into) {
  DoctorFacts& facts = into.facts;
  facts.endpoint = config.web.listen;
  const auto listen = metrics_export::parse_listen_address(config.web.listen);
  if (!listen) return;
  const auto endpoint = endpoint_of(*listen);
  facts.open_to_network = open_to_network(config.web.listen);
  facts.protected_by_auth = !config.web.basic_auth_users.empty();
  // Its certificate and its passwords are not ours to have: then the daemon's own view is left out.
  if (!config.web.tls_certificate.empty() || !endpoint) return;
  const auto answer = server::http_get(*endpoint, "/api/v1/state", {});
  if (!answer) {
    facts.state_error = answer.error().message();
  } else if (answer->status == 200) {
    into.state = json::parse(answer->body, nullptr, false);
    if (into.state.is_object()) {
      facts.state = &into.state;
    } else {
      facts.state_error = "what answers there is not rooflined";
    }
  } else if (answer->status != 401) {
    facts.state_error = fmt::format("status {}", answer->status);
  }
}

void ports(const DoctorOptions& options, const config::Config& config, DoctorFacts& facts) {
  facts.ports = live_options(config).ports;
  const std::string proc = (fs::path(options.root) / "proc").string();
  const auto watched = [&](std::uint16_t port) {
    return std::find(facts.ports.begin(), facts.ports.end(), port) != facts.ports.end();
  };
  std::set<std::uint16_t> listening;
  const server::ListeningSockets listeners = server::ListeningSockets::read(proc);
  for (const server::ListeningSocket& socket : listeners.all()) {
    if (watched(socket.local.port)) listening.insert(socket.local.port);
  }
  const auto network = tap::system_host_network((fs::path(options.root) / "sys").string());
  const std::vector<tap::Address> own = network->addresses();
  std::set<std::uint16_t> remote;
  for (const Endpoint& endpoint : server::remote_endpoints(proc)) {
    if (!watched(endpoint.port) || is_loopback(endpoint.address)) continue;
    if (std::find(own.begin(), own.end(), endpoint.address) != own.end()) continue;
    const auto way = network->route(endpoint.address);
    if (way && network->is_card(*way).value_or(false)) remote.insert(endpoint.port);
  }
  facts.listening_ports.assign(listening.begin(), listening.end());
  facts.remote_ports.assign(remote.begin(), remote.end());
}

DoctorModel check_model(const DoctorOptions& options, const std::string& target, const Endpoint& endpoint,
                        const std::string& told) {
  DoctorModel model;
  model.target = target;
  model.port = endpoint.port;
  model.path = told;
  model.reader = options.user;
  if (told.empty()) return model;
  std::string path = told;
  if (const auto cached = find_in_hub_cache(told, endpoint)) {
    path = *cached;
  } else {
    const auto found = server::locate_model(told, endpoint);
    if (!found) {
      model.error = found.error().message();
      return model;
    }
    path = found->path;
  }
  model.path = path;
  const ReadCheck check = readable_by(options.user, path);
  if (!check.readable) {
    model.error = fmt::format("user {} may not read {}", options.user, path);
    model.group = check.group;
  }
  return model;
}

// The targets of the settings, and those that the daemon found and has no geometry for.
void models(const DoctorOptions& options, const config::Config& config, DoctorFacts& facts) {
  std::set<std::uint16_t> done;
  const auto local = [](std::uint16_t port) {
    Endpoint endpoint;
    endpoint.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
    endpoint.port = port;
    return endpoint;
  };
  for (const config::TargetConfig& target : config.targets) {
    if (target.model.empty()) continue;
    facts.models.push_back(check_model(options, target.name, local(target.port), target.model));
    done.insert(target.port);
  }
  if (facts.state == nullptr) return;
  for (const json& target : member(*facts.state, "targets")) {
    if (!is_true(target, "up") || member(target, "geometry").is_object()) continue;
    const json& port = member(target, "port");
    if (!port.is_number_unsigned() || port.get<std::uint64_t>() > 65'535) continue;
    const Endpoint endpoint = local(port.get<std::uint16_t>());
    if (!done.insert(endpoint.port).second) continue;
    const auto identity = server::identify(endpoint, ServerFamily::kUnknown, {});
    facts.models.push_back(
        check_model(options, text_of(target, "target"), endpoint, identity ? identity->model_path : std::string()));
  }
}

void probe_room(const DoctorOptions& options, const config::Config& config, DoctorFacts& facts) {
  std::error_code ignored;
  facts.pressure_shown = fs::exists(fs::path(options.root) / "proc/pressure/cpu", ignored);
  if (config.ceiling.peak_bytes_per_second || config.ceiling.measure == config::MeasureCeiling::kNever) return;
  const auto plan = ceiling::plan_working_set(ceiling::read_memory_facts(options.root),
                                              ceiling::read_llc_bytes(options.root), config.ceiling.working_set);
  if (!plan) facts.no_room = plan.error().message();
}

}  // namespace

ReadCheck readable_by(const std::string& user, const std::string& path) {
  const passwd* entry = getpwnam(user.c_str());
  if (entry == nullptr) return {::access(path.c_str(), R_OK) == 0, {}};
  if (entry->pw_uid == 0) return {::access(path.c_str(), R_OK) == 0, {}};
  const uid_t uid = entry->pw_uid;
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  if (getgrouplist(user.c_str(), entry->pw_gid, groups.data(), &count) < 0) count = static_cast<int>(groups.size());
  groups.resize(static_cast<std::size_t>(count));

  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return {};
  bool allowed = true;
  std::set<gid_t> would_do;  // groups whose bits open what is closed
  fs::path way;
  for (const fs::path& part : real) {
    way /= part;
    struct stat info {};
    if (::stat(way.c_str(), &info) != 0) return {};
    const mode_t wanted = S_ISDIR(info.st_mode) && way != real ? 1 : (S_ISDIR(info.st_mode) ? 5 : 4);
    const bool in_group = std::find(groups.begin(), groups.end(), info.st_gid) != groups.end();
    const mode_t bits = info.st_uid == uid ? info.st_mode >> 6 : in_group ? info.st_mode >> 3 : info.st_mode;
    if ((bits & wanted) == wanted) continue;
    allowed = false;
    if (((info.st_mode >> 3) & wanted) != wanted) return {};  // no group opens it
    would_do.insert(info.st_gid);
  }
  if (allowed) return {true, {}};
  const group* name = would_do.size() == 1 ? getgrgid(*would_do.begin()) : nullptr;
  return {false, name == nullptr ? std::string() : std::string(name->gr_name)};
}

void gather(const DoctorOptions& options, GatheredFacts& into) {
  config::Config config;
  settings(options, config, into.facts);
  daemon_state(config, into);
  interface(options, config, into.facts);
  capture(config, into.facts);
  ports(options, config, into.facts);
  models(options, config, into.facts);
  probe_room(options, config, into.facts);
}

}  // namespace rooflined::daemon
