#include "daemon/doctor.h"

#include "daemon/json_member.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace rooflined::daemon {
namespace {

using nlohmann::json;

class Report {
 public:
  void works(std::string topic, std::string text) { add(Health::kWorks, std::move(topic), std::move(text), {}); }
  void hint(std::string topic, std::string text, std::vector<std::string> fix = {}) {
    add(Health::kHint, std::move(topic), std::move(text), std::move(fix));
  }
  void broken(std::string topic, std::string text, std::vector<std::string> fix) {
    add(Health::kBroken, std::move(topic), std::move(text), std::move(fix));
  }
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  void add(Health health, std::string topic, std::string text, std::vector<std::string> fix) {
    findings_.push_back({health, std::move(topic), std::move(text), std::move(fix)});
  }
  std::vector<Finding> findings_;
};

std::string list(const std::vector<std::uint16_t>& ports) {
  return fmt::format("{}", fmt::join(ports, ", "));
}

void settings(const DoctorFacts& facts, Report& report) {
  if (facts.settings_errors.empty()) {
    report.works("settings", facts.settings_path);
    return;
  }
  for (const std::string& error : facts.settings_errors) {
    report.broken("settings", error, {fmt::format("rooflined check-config {}", facts.settings_path)});
  }
}

void capture(const DoctorFacts& facts, Report& report) {
  if (!facts.interface_there) {
    report.broken("capture", fmt::format("there is no interface {}", facts.interface),
                  {"[capture]", "interface = \"any\"        # or a name that `ip -brief link` shows"});
    return;
  }
  if (!facts.interface_up) {
    report.broken("capture", fmt::format("interface {} is down", facts.interface),
                  {fmt::format("ip link set {} up", facts.interface)});
    return;
  }
  if (!facts.capture_error.empty()) {
    report.broken("capture", facts.capture_error,
                  {"systemctl enable --now rooflined       # the unit carries CAP_NET_RAW",
                   "setcap cap_net_raw=ep /usr/bin/rooflined   # without systemd"});
    return;
  }
  report.works("capture", fmt::format("packets of {} can be captured", facts.interface));
}

void daemon(const DoctorFacts& facts, Report& report) {
  if (!facts.state_error.empty()) {
    report.broken("daemon", fmt::format("http://{} does not answer: {}", facts.endpoint, facts.state_error),
                  {"systemctl enable --now rooflined", "journalctl -u rooflined -n 20"});
  } else if (facts.state != nullptr) {
    report.works("daemon", fmt::format("answers on {}", facts.endpoint));
  } else {
    report.hint("daemon",
                fmt::format("{} wants TLS or a password: what the daemon itself sees is left out here", facts.endpoint),
                {"look at its page, or at /api/v1/state"});
  }
  if (facts.open_to_network && !facts.protected_by_auth) {
    report.hint("endpoint", fmt::format("{} is open to the network, and asks for no password", facts.endpoint),
                {"[web]", "basic_auth_users = {prometheus = \"$2y$…\"}   # htpasswd -nBC 10 prometheus",
                 "tls_certificate = \"…\"", "tls_key = \"…\""});
  }
}

void ports(const DoctorFacts& facts, Report& report) {
  if (!facts.listening_ports.empty()) {
    report.works("ports", fmt::format("a server listens on {}", list(facts.listening_ports)));
  } else {
    report.broken("ports", fmt::format("no server listens on a watched port ({})", list(facts.ports)),
                  {"[capture]", "ports = [PORT]           # the one that your inference server listens on"});
  }
  for (const std::uint16_t port : facts.remote_ports) {
    report.hint(fmt::format("port {}", port),
                "a client here talks to a server on another host: only servers of this host are measured",
                {"install rooflined on the host of that server"});
  }
}

void wire(const json& state, Report& report) {
  const json& capture = member(state, "capture");
  const json& errors = member(capture, "parse_errors");
  if (const double seen = number_of(errors, "tls"); seen > 0) {
    report.broken("TLS", fmt::format("{:.0f} connections to a watched port are encrypted: nothing can be read", seen),
                  {"end TLS in a proxy on this host, and watch the plain port behind it: [capture] ports = [PORT]"});
  }
  if (const double seen = number_of(errors, "http2"); seen > 0) {
    report.broken("HTTP/2", fmt::format("{:.0f} connections to a watched port speak HTTP/2, which is not read", seen),
                  {"let the client or the proxy speak HTTP/1.1 to the engine"});
  }
  const double dropped = number_of(capture, "dropped_packets");
  const double packets = number_of(capture, "packets");
  if (packets + dropped > 0 && dropped / (packets + dropped) > 0.001) {
    report.hint("capture",
                fmt::format("the kernel dropped {:.2f} % of the packets", 100 * dropped / (packets + dropped)),
                {"[capture]", "interface = \"…\"          # the one that the server is reached over",
                 "ports = [PORT]           # only the server's"});
  }
}

void ceiling(const json& state, Report& report) {
  const json& ceiling = member(state, "ceiling");
  if (!ceiling.is_object()) {
    std::string why;
    for (const auto& [reason, blocked] : member(state, "idle_blocked").items()) {
      if (blocked.is_number() && blocked.get<double>() > 0) why += (why.empty() ? "" : ", ") + reason;
      if (blocked.is_boolean() && blocked.get<bool>()) why += (why.empty() ? "" : ", ") + reason;
    }
    const std::string kept = why.empty() ? "no measurement has been adopted yet" : "kept from idle windows by: " + why;
    report.hint("ceiling", "not known yet, so MBU is absent: " + kept,
                {"rooflined membw --adopt      # in a quiet moment, as root"});
    return;
  }
  const std::string text =
      fmt::format("{:.1f} GB/s, {}", number_of(ceiling, "bytes_per_second") / 1e9, text_of(ceiling, "source"));
  if (is_true(ceiling, "stale")) {
    report.hint("ceiling", text + ", and older than max_age",
                {"rooflined membw --adopt      # in a quiet moment, as root", "[ceiling]", "max_age = \"30d\""});
  } else if (is_true(ceiling, "suspect")) {
    const bool contradicted = number_of(member(state, "ceiling_measurements"), "suspect") > 0;
    report.hint("ceiling",
                text + (contradicted ? "; the last result is far from it, and waits for a second one that agrees"
                                     : "; so far it stands alone, and waits for a second one that agrees"));
  } else {
    report.works("ceiling", text);
  }
}

void probe(const DoctorFacts& facts, Report& report) {
  if (!facts.no_room.empty()) {
    report.hint("probe", "no room to measure the ceiling: " + facts.no_room,
                {"free memory (page cache is left alone), or name the bandwidth:", "[ceiling]",
                 "peak_bytes_per_second = \"…GB\""});
  }
  if (!facts.pressure_shown) {
    report.hint("pressure", "this kernel does not show /proc/pressure: idle windows are told by CPU use and load alone",
                {"add psi=1 to the kernel's command line"});
  }
}

void model(const DoctorModel& model, Report& report) {
  const std::string topic = fmt::format("model of {}", model.target);
  if (model.path.empty()) {
    report.broken(topic, "the server does not say which model it serves: bytes and MBU are absent",
                  {"[[target]]", fmt::format("name = \"{}\"", model.target), fmt::format("port = {}", model.port),
                   "model = \"/path/to/model\""});
  } else if (model.error.empty()) {
    report.works(topic, model.path);
  } else if (!model.group.empty()) {
    report.broken(topic, fmt::format("user {} may not read {}", model.reader, model.path),
                  {"systemctl edit rooflined      # add these two lines, then restart it:", "[Service]",
                   fmt::format("SupplementaryGroups={}", model.group)});
  } else {
    report.broken(topic, model.error,
                  {"[[target]]", fmt::format("name = \"{}\"", model.target), fmt::format("port = {}", model.port),
                   "model = \"/path/to/model\"   # a copy, or a path that user " + model.reader + " can read"});
  }
}

void targets(const json& state, Report& report) {
  const json& targets = member(state, "targets");
  if (!targets.is_array() || targets.empty()) {
    report.hint("targets", "none yet: a target appears with the first streamed answer on a watched port",
                {"send the server a request with \"stream\": true"});
    return;
  }
  for (const json& target : targets) {
    const std::string topic = "target " + text_of(target, "target");
    std::string caveats;
    const json& reasons = member(target, "caveats");
    if (reasons.is_array()) {
      for (const json& reason : reasons) {
        if (reason.is_string()) caveats += (caveats.empty() ? "" : ", ") + reason.get<std::string>();
      }
    }
    const std::string text =
        fmt::format("{}, {:.0f} tokens seen", text_of(target, "server"), number_of(target, "output_tokens"));
    if (!is_true(target, "up")) {
      report.hint(topic, text + "; its listener is gone");
    } else if (!caveats.empty()) {
      report.hint(topic, text + "; caveats: " + caveats, {"README, section Caveats, says what each means"});
    } else {
      report.works(topic, text);
    }
  }
}

}  // namespace

std::string_view health_name(Health health) {
  switch (health) {
    case Health::kWorks:
      return "ok";
    case Health::kHint:
      return "hint";
    case Health::kBroken:
      return "broken";
  }
  return "";
}

std::vector<Finding> diagnose(const DoctorFacts& facts) {
  Report report;
  settings(facts, report);
  capture(facts, report);
  daemon(facts, report);
  ports(facts, report);
  if (facts.state != nullptr) wire(*facts.state, report);
  for (const DoctorModel& each : facts.models) model(each, report);
  if (facts.state != nullptr) {
    targets(*facts.state, report);
    ceiling(*facts.state, report);
  }
  probe(facts, report);
  return report.take();
}

}  // namespace rooflined::daemon
