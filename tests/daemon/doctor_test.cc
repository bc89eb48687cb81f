// Each wrong set-up that `rooflined doctor` knows: what it says, and what it says to do.

#include "daemon/doctor.h"
#include "daemon/doctor_facts.h"
#include "tests/support/catch.h"
#include "tests/support/containing.h"
#include "tests/support/temporary_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace rooflined::daemon {
namespace {

using nlohmann::json;

// Everything works.
DoctorFacts healthy(const json& state) {
  DoctorFacts facts;
  facts.settings_path = "/etc/rooflined/rooflined.toml";
  facts.interface = "any";
  facts.endpoint = "127.0.0.1:10074";
  facts.ports = {8080};
  facts.listening_ports = {8080};
  facts.state = &state;
  return facts;
}

json healthy_state() {
  return json::parse(R"({
    "targets": [{"target": "llama.cpp-8080", "server": "llama.cpp", "up": true, "output_tokens": 12, "caveats": []}],
    "ceiling": {"source": "measured", "bytes_per_second": 3e10, "stale": false, "suspect": false},
    "idle_blocked": {},
    "capture": {"packets": 1000, "dropped_packets": 0, "parse_errors": {}}
  })");
}

std::string text(const std::vector<Finding>& findings, Health health) {
  std::string all;
  for (const Finding& finding : findings) {
    if (finding.health != health) continue;
    all += finding.topic + ": " + finding.text;
    for (const std::string& line : finding.fix) all += "\n  " + line;
    all += "\n";
  }
  return all;
}

TEST_CASE("doctor: nothing to mend") {
  const json state = healthy_state();
  const std::vector<Finding> findings = diagnose(healthy(state));
  CHECK(text(findings, Health::kBroken).empty());
  CHECK(text(findings, Health::kHint).empty());
  CHECK(text(findings, Health::kWorks).find("ceiling: 30.0 GB/s, measured") != std::string::npos);
}

TEST_CASE("doctor: each wrong set-up by its name, with what mends it") {
  struct Row {
    const char* name;
    Health health;
    std::function<void(DoctorFacts&, json&)> breaks;
    const char* says;
    const char* fix;
  };
  const std::vector<Row> rows = {
      {"settings", Health::kBroken, [](DoctorFacts& f, json&) { f.settings_errors = {"a.toml:3:1: unknown key"}; },
       "a.toml:3:1: unknown key", "rooflined check-config"},
      {"capability", Health::kBroken, [](DoctorFacts& f, json&) { f.capture_error = "any: CAP_NET_RAW is needed"; },
       "CAP_NET_RAW is needed", "setcap cap_net_raw=ep"},
      {"interface missing", Health::kBroken,
       [](DoctorFacts& f, json&) { f.interface = "eth7", f.interface_there = false; }, "there is no interface eth7",
       "ip -brief link"},
      {"interface down", Health::kBroken, [](DoctorFacts& f, json&) { f.interface = "eth0", f.interface_up = false; },
       "interface eth0 is down", "ip link set eth0 up"},
      {"daemon down", Health::kBroken, [](DoctorFacts& f, json&) { f.state = nullptr, f.state_error = "refused"; },
       "does not answer: refused", "journalctl -u rooflined"},
      {"daemon behind a password", Health::kHint, [](DoctorFacts& f, json&) { f.state = nullptr; },
       "wants TLS or a password", "/api/v1/state"},
      {"endpoint open", Health::kHint, [](DoctorFacts& f, json&) { f.endpoint = ":10074", f.open_to_network = true; },
       ":10074 is open to the network, and asks for no password", "basic_auth_users"},
      {"no server", Health::kBroken, [](DoctorFacts& f, json&) { f.listening_ports.clear(); },
       "no server listens on a watched port (8080)", "ports = [PORT]"},
      {"remote server", Health::kHint, [](DoctorFacts& f, json&) { f.remote_ports = {8000}; },
       "a server on another host", "install rooflined on the host of that server"},
      {"TLS", Health::kBroken, [](DoctorFacts&, json& s) { s["capture"]["parse_errors"]["tls"] = 3; },
       "3 connections to a watched port are encrypted", "end TLS in a proxy"},
      {"HTTP/2", Health::kBroken, [](DoctorFacts&, json& s) { s["capture"]["parse_errors"]["http2"] = 1; },
       "speak HTTP/2", "HTTP/1.1"},
      {"packet loss", Health::kHint, [](DoctorFacts&, json& s) { s["capture"]["dropped_packets"] = 10; },
       "the kernel dropped 0.99 %", "[capture]"},
      {"model unreadable", Health::kBroken,
       [](DoctorFacts& f, json&) {
         f.models = {{"chat", 8080, "/home/ann/m.gguf", "rooflined", "user rooflined may not read it", "ann"}};
       },
       "user rooflined may not read /home/ann/m.gguf", "[Service]\n  SupplementaryGroups=ann"},
      {"model not there", Health::kBroken,
       [](DoctorFacts& f, json&) {
         f.models = {{"chat", 8080, "m.gguf", "rooflined", "m.gguf: not found", ""}};
       },
       "m.gguf: not found", "[[target]]\n  name = \"chat\"\n  port = 8080\n  model = "},
      {"model untold", Health::kBroken,
       [](DoctorFacts& f, json&) {
         f.models = {{"vllm-8000", 8000, "", "rooflined", "", ""}};
       },
       "does not say which model", "name = \"vllm-8000\""},
      {"no target", Health::kHint, [](DoctorFacts&, json& s) { s["targets"] = json::array(); }, "none yet",
       "\"stream\": true"},
      {"caveats", Health::kHint,
       [](DoctorFacts&, json& s) {
         s["targets"][0]["caveats"] = {"lossy", "converted"};
       },
       "caveats: lossy, converted", "section Caveats"},
      {"target gone", Health::kHint, [](DoctorFacts&, json& s) { s["targets"][0]["up"] = false; },
       "its listener is gone", ""},
      {"ceiling stale", Health::kHint, [](DoctorFacts&, json& s) { s["ceiling"]["stale"] = true; },
       "older than max_age", "rooflined membw --adopt"},
      {"ceiling suspect", Health::kHint,
       [](DoctorFacts&, json& s) {
         s["ceiling"]["suspect"] = true, s["ceiling_measurements"] = {{"adopted", 2}, {"suspect", 1}};
       },
       "the last result is far from it", ""},
      {"ceiling from one result", Health::kHint, [](DoctorFacts&, json& s) { s["ceiling"]["suspect"] = true; },
       "it stands alone", ""},
      {"ceiling unknown", Health::kHint,
       [](DoctorFacts&, json& s) {
         s.erase("ceiling"), s["idle_blocked"] = {{"cpu", 1}, {"load", 0}};
       },
       "kept from idle windows by: cpu", "rooflined membw --adopt"},
      {"no room", Health::kHint, [](DoctorFacts& f, json&) { f.no_room = "memory: 10 MB free"; },
       "no room to measure the ceiling: memory: 10 MB free", "peak_bytes_per_second"},
      {"PSI off", Health::kHint, [](DoctorFacts& f, json&) { f.pressure_shown = false; },
       "does not show /proc/pressure", "psi=1"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    json state = healthy_state();
    DoctorFacts facts = healthy(state);
    row.breaks(facts, state);
    const std::vector<Finding> findings = diagnose(facts);
    CHECK(text(findings, row.health) == test::containing(row.says));
    CHECK(text(findings, row.health) == test::containing(row.fix));
  }
}

TEST_CASE("doctor: a state of any shape is taken apart without harm") {
  for (const char* odd : {"null", "[]", "1", R"({"targets": 1, "ceiling": [], "capture": "x", "idle_blocked": []})",
                          R"({"targets": [1, {"caveats": {"a": 1}, "up": "yes", "output_tokens": "many"}]})",
                          R"({"ceiling": {"bytes_per_second": "fast", "stale": 3}, "capture": {"parse_errors": 4}})"}) {
    const json state = json::parse(odd);
    CHECK_FALSE(diagnose(healthy(state)).empty());
  }
}

TEST_CASE("doctor: who may read a file is told by the bits on the way to it") {
  if (geteuid() != 0) return;  // only root can give a file to another user
  const TemporaryFolder folder;
  chmod(folder.path().c_str(), 0755);
  const std::string inner = folder.path() + "/home";
  mkdir(inner.c_str(), 0755);
  const std::string file = inner + "/m.gguf";
  std::ofstream(file) << "x";
  const auto modes = [&](mode_t folder_mode, mode_t file_mode) {
    chmod(inner.c_str(), folder_mode);
    chmod(file.c_str(), file_mode);
  };
  modes(0755, 0644);
  CHECK(readable_by("nobody", file).readable);
  modes(0750, 0640);
  CHECK_FALSE(readable_by("nobody", file).readable);
  CHECK(readable_by("nobody", file).group == "root");
  modes(0755, 0600);
  CHECK_FALSE(readable_by("nobody", file).readable);
  CHECK(readable_by("nobody", file).group.empty());
  CHECK_FALSE(readable_by("nobody", file + ".not").readable);
  CHECK(readable_by("root", file).readable);
}

}  // namespace
}  // namespace rooflined::daemon
