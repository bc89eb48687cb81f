#include "daemon/settings.h"

#include "collectors/server/listening_sockets.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <tuple>

namespace rooflined::daemon {

bool gpu_present() {
  std::error_code ignored;
  for (const char* node : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dri/renderD128", "/dev/accel/accel0"}) {
    if (std::filesystem::exists(node, ignored)) return true;
  }
  return false;
}

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

tap::LiveOptions live_options(const config::Config& settings) {
  tap::LiveOptions options;
  options.interface = settings.capture.interface;
  options.ports = settings.capture.ports;
  // A target that is named in the settings is watched wherever it is.
  for (const config::TargetConfig& target : settings.targets) {
    if (std::find(options.ports.begin(), options.ports.end(), target.port) == options.ports.end()) {
      options.ports.push_back(target.port);
    }
  }
  return options;
}

metrics_export::MetricsServer::Options web_options(const config::Config& settings) {
  metrics_export::MetricsServer::Options options;
  options.listen = settings.web.listen;
  options.version = ROOFLINED_VERSION;
  options.tls_certificate = settings.web.tls_certificate;
  options.tls_key = settings.web.tls_key;
  options.basic_auth_users = settings.web.basic_auth_users;
  return options;
}

std::vector<TargetSettings> target_settings(const config::Config& settings) {
  std::vector<TargetSettings> all;
  for (const config::TargetConfig& target : settings.targets) {
    TargetSettings one;
    one.port = target.port;
    one.name = target.name;
    one.replicas = target.replicas;
    one.pipeline_parallel = target.pipeline_parallel;
    one.speculates = target.speculative.value_or(false);
    switch (target.device) {
      case config::Device::kAuto:
        one.device = Device::kAuto;
        break;
      case config::Device::kCpu:
        one.device = Device::kCpu;
        break;
      case config::Device::kGpu:
        one.device = Device::kGpu;
        break;
    }
    one.numa_nodes = target.numa_nodes;
    if (target.rated_bytes_per_second) one.gpu_bandwidth = target.gpus * *target.rated_bytes_per_second;
    all.push_back(one);
  }
  return all;
}

LineOptions line_options(const config::Config& settings) {
  LineOptions options;
  options.ports = live_options(settings).ports;
  options.interface = settings.capture.interface;
  for (const config::WindowSpan& span : settings.windows.spans) {
    options.targets.windows.push_back(WindowSpan{span.name, span.span});
  }
  options.targets.live = WindowSpan{"10s", std::chrono::seconds(10)};
  options.targets.settings = target_settings(settings);
  options.targets.gpu_present = gpu_present();
  options.targets.models_max = settings.limits.models_max;
  options.targets.same_listener = [](const Endpoint& known, const Endpoint& seen) {
    const server::ListeningSockets listeners = server::ListeningSockets::now();
    const std::optional<std::uint64_t> inode = listeners.inode(known);
    return inode && inode == listeners.inode(seen);
  };
  return options;
}

CeilingKeeper::Options ceiling_options(const config::Config& settings) {
  CeilingKeeper::Options options;
  switch (settings.ceiling.measure) {
    case config::MeasureCeiling::kAuto:
      options.measure = CeilingKeeper::Measure::kAuto;
      break;
    case config::MeasureCeiling::kAlways:
      options.measure = CeilingKeeper::Measure::kAlways;
      break;
    case config::MeasureCeiling::kNever:
      options.measure = CeilingKeeper::Measure::kNever;
      break;
  }
  options.gpu_present = gpu_present();
  options.state_directory = settings.state.directory;
  options.configured = settings.ceiling.peak_bytes_per_second;
  options.interval = settings.ceiling.interval;
  options.idle_for = settings.ceiling.idle_for;
  options.max_age = settings.ceiling.max_age;
  options.probe.repetitions = settings.ceiling.repetitions;
  options.probe.working_set = settings.ceiling.working_set;
  options.doorbell = {settings.capture.interface, live_options(settings).ports};
  return options;
}

bool needs_restart(const config::Config& running, const config::Config& wanted) {
  const auto fixed = [](const config::Config& settings) {
    std::set<std::tuple<std::uint16_t, std::string, unsigned, unsigned, std::optional<bool>>> targets;
    for (const config::TargetConfig& target : settings.targets) {
      targets.emplace(target.port, target.name, target.replicas, target.pipeline_parallel, target.speculative);
    }
    return targets;
  };
  if (fixed(running) != fixed(wanted)) return true;
  return !(running.web == wanted.web && running.state == wanted.state && running.capture == wanted.capture &&
           running.windows == wanted.windows);
}

}  // namespace rooflined::daemon
