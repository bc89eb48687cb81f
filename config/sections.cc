#include "config/sections.h"

#include "config/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace rooflined::config {

namespace {

using Node = toml::node;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kYear = hours(365 * 24);

bool is_listen_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) return false;
  if (host.find_first_of("/ ") != std::string_view::npos) return false;
  // Colons of an IPv6 address stand in brackets.
  return host.find(':') == std::string_view::npos || (host.starts_with('[') && host.ends_with(']'));
}

void read_listen(const Node& value, std::string& out, Faults& faults) {
  std::string text;
  read_text(value, text, faults, false);
  if (text.empty()) return;
  if (is_listen_address(text)) {
    out = text;
  } else {
    faults.add(value, fmt::format("\"{}\" is no address to listen on: write ADDRESS:PORT, [IPV6]:PORT or :PORT", text));
  }
}

// "$2a$", "$2b$" or "$2y$", two digits of cost, and 53 characters of salt and hash.
bool is_bcrypt_hash(std::string_view hash) {
  return hash.size() == 60 && hash.starts_with("$2") && (hash[2] == 'a' || hash[2] == 'b' || hash[2] == 'y') &&
         hash[3] == '$' && hash[6] == '$' &&
         hash.find_first_not_of("./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz$") ==
             std::string_view::npos;
}

void read_users(const Node& value, WebConfig& web, Faults& faults) {
  const auto* table = value.as_table();
  if (table == nullptr) {
    faults.add(value, "expected a table of user = \"bcrypt hash\"");
    return;
  }
  for (const auto& [user, node] : *table) {
    std::string hash;
    read_text(node, hash, faults, false);
    // The hash itself is a secret: the message does not repeat it.
    if (user.str().empty() || user.str().find(':') != std::string_view::npos) {
      faults.add(user.source(), "a user name must not be empty or hold a colon");
    } else if (!hash.empty() && !is_bcrypt_hash(hash)) {
      faults.add(node,
                 "expected a bcrypt hash of 60 characters, as in \"$2y$10$…\" (htpasswd -nBC 10 USER prints one)");
    } else if (!hash.empty()) {
      web.basic_auth_users[std::string(user.str())] = hash;
    }
  }
}

void read_ports(const Node& value, CaptureConfig& capture, Faults& faults) {
  constexpr std::size_t kPortsMax = 64;
  const auto* array = value.as_array();
  if (array == nullptr || array->empty() || array->size() > kPortsMax) {
    faults.add(value, fmt::format("expected an array of 1 to {} port numbers", kPortsMax));
    return;
  }
  std::vector<std::uint16_t> ports;
  for (const Node& node : *array) {
    std::uint16_t port = 0;
    read_port(node, port, faults);
    if (port == 0) continue;
    if (std::find(ports.begin(), ports.end(), port) != ports.end()) {
      faults.add(node, fmt::format("port {} is listed twice", port));
    }
    ports.push_back(port);
  }
  capture.ports = ports;
}

void read_numa_nodes(const Node& value, std::vector<int>& out, Faults& faults) {
  constexpr std::int64_t kNodeMax = 1023;  // of the kernel's own bound, MAX_NUMNODES
  const auto* array = value.as_array();
  if (array == nullptr) {
    faults.add(value, "expected an array of NUMA node numbers, as in [0]");
    return;
  }
  std::vector<int> nodes;
  for (const Node& item : *array) {
    const auto number = item.value_exact<std::int64_t>();
    if (!number || *number < 0 || *number > kNodeMax) {
      faults.add(item, fmt::format("expected the number of a NUMA node, 0 to {}", kNodeMax));
    } else if (std::find(nodes.begin(), nodes.end(), static_cast<int>(*number)) != nodes.end()) {
      faults.add(item, fmt::format("node {} is listed twice", *number));
    } else {
      nodes.push_back(static_cast<int>(*number));
    }
  }
  out = nodes;
}

void read_spans(const Node& value, WindowsConfig& windows, Faults& faults) {
  constexpr std::size_t kSpansMax = 8;  // each is a set of series for every target
  const auto* array = value.as_array();
  if (array == nullptr || array->empty() || array->size() > kSpansMax) {
    faults.add(value, fmt::format("expected an array of 1 to {} durations, as in [\"1m\", \"5m\"]", kSpansMax));
    return;
  }
  std::vector<WindowSpan> spans;
  for (const Node& node : *array) {
    Duration span{};
    read_duration(node, span, faults, seconds(5), hours(1));
    if (span == Duration{}) continue;
    const bool repeated =
        std::any_of(spans.begin(), spans.end(), [span](const WindowSpan& other) { return other.span == span; });
    if (repeated) faults.add(node, "this span is listed twice");
    spans.push_back({node.as_string()->get(), span});
  }
  windows.spans = spans;
}

void read_cache_type(const Node& value, std::string& out, Faults& faults) {
  static constexpr std::array<std::string_view, 14> kTypes = {"f32",  "f16",   "bf16",     "q8_0",    "q5_0",
                                                              "q5_1", "q4_0",  "q4_1",     "iq4_nl",  "fp8",
                                                              "int8", "nvfp4", "fp8_e4m3", "fp8_e5m2"};
  std::string text;
  read_auto_text(value, text, faults);
  if (text.empty()) {
    out.clear();
    return;
  }
  const std::size_t comma = text.find(',');
  for (std::string_view part :
       {std::string_view(text).substr(0, comma),
        comma == std::string::npos ? std::string_view() : std::string_view(text).substr(comma + 1)}) {
    if (part.data() == nullptr) continue;
    if (std::find(kTypes.begin(), kTypes.end(), part) == kTypes.end()) {
      faults.add(value, fmt::format("\"{}\" is no cache type: write \"auto\", one of {}, or two for K and V as in "
                                    "\"q8_0,f16\"",
                                    part, fmt::join(kTypes, ", ")));
      return;
    }
  }
  out = text;
}

template <typename Enum, std::size_t kCount>
void read_enum(const Node& value, Enum& out, Faults& faults, const std::array<std::string_view, kCount>& words) {
  if (const auto index = read_word(value, words, faults)) out = static_cast<Enum>(*index);
}

constexpr std::array<std::string_view, 3> kDeviceWords = {"auto", "cpu", "gpu"};        // Device
constexpr std::array<std::string_view, 3> kMeasureWords = {"auto", "always", "never"};  // MeasureCeiling

// Memory moves between a byte and an exabyte a second.
constexpr double kRateMin = 1e6;
constexpr double kRateMax = 1e18;

constexpr std::array<Key<WebConfig>, 4> kWebKeys = {{
    {"listen", [](const Node& v, WebConfig& s, Faults& f) { read_listen(v, s.listen, f); }},
    {"tls_certificate", [](const Node& v, WebConfig& s, Faults& f) { read_text(v, s.tls_certificate, f, true); }},
    {"tls_key", [](const Node& v, WebConfig& s, Faults& f) { read_text(v, s.tls_key, f, true); }},
    {"basic_auth_users", [](const Node& v, WebConfig& s, Faults& f) { read_users(v, s, f); }},
}};

constexpr std::array<Key<StateConfig>, 1> kStateKeys = {{
    {"directory", [](const Node& v, StateConfig& s, Faults& f) { read_text(v, s.directory, f, false); }},
}};

constexpr std::array<Key<CaptureConfig>, 2> kCaptureKeys = {{
    {"interface", [](const Node& v, CaptureConfig& s, Faults& f) { read_text(v, s.interface, f, false); }},
    {"ports", [](const Node& v, CaptureConfig& s, Faults& f) { read_ports(v, s, f); }},
}};

constexpr std::array<Key<ServerConfig>, 2> kServerKeys = {{
    {"identify", [](const Node& v, ServerConfig& s, Faults& f) { read_bool(v, s.identify, f); }},
    {"identify_token_file",
     [](const Node& v, ServerConfig& s, Faults& f) { read_text(v, s.identify_token_file, f, true); }},
}};

constexpr std::array<Key<WindowsConfig>, 1> kWindowsKeys = {{
    {"spans", [](const Node& v, WindowsConfig& s, Faults& f) { read_spans(v, s, f); }},
}};

constexpr std::array<Key<CeilingConfig>, 7> kCeilingKeys = {{
    {"measure", [](const Node& v, CeilingConfig& s, Faults& f) { read_enum(v, s.measure, f, kMeasureWords); }},
    {"interval",
     [](const Node& v, CeilingConfig& s, Faults& f) { read_duration(v, s.interval, f, minutes(1), kYear); }},
    {"idle_for",
     [](const Node& v, CeilingConfig& s, Faults& f) { read_duration(v, s.idle_for, f, seconds(1), hours(24)); }},
    {"max_age", [](const Node& v, CeilingConfig& s, Faults& f) { read_duration(v, s.max_age, f, minutes(1), kYear); }},
    {"repetitions", [](const Node& v, CeilingConfig& s, Faults& f) { read_count(v, s.repetitions, f, 5, 100); }},
    {"working_set",
     [](const Node& v, CeilingConfig& s, Faults& f) {
       std::optional<double> bytes;
       read_auto_bytes(v, bytes, f, 64e6, 1e13);  // at least 64 MB, design of the ceiling
       s.working_set = bytes ? std::optional<Bytes>(static_cast<Bytes>(*bytes)) : std::nullopt;
     }},
    {"peak_bytes_per_second", [](const Node& v, CeilingConfig& s,
                                 Faults& f) { read_auto_bytes(v, s.peak_bytes_per_second, f, kRateMin, kRateMax); }},
}};

constexpr std::array<Key<LimitsConfig>, 2> kLimitsKeys = {{
    {"cpu", [](const Node& v, LimitsConfig& s, Faults& f) { read_number(v, s.cpu, f, 0.001, 1); }},
    {"models_max", [](const Node& v, LimitsConfig& s, Faults& f) { read_count(v, s.models_max, f, 1, 1000); }},
}};

constexpr std::array<Key<TargetConfig>, 24> kTargetKeys = {{
    {"name", [](const Node& v, TargetConfig& s, Faults& f) { read_text(v, s.name, f, false); }},
    {"port", [](const Node& v, TargetConfig& s, Faults& f) { read_port(v, s.port, f); }},
    {"model", [](const Node& v, TargetConfig& s, Faults& f) { read_auto_text(v, s.model, f); }},
    {"replicas", [](const Node& v, TargetConfig& s, Faults& f) { read_count(v, s.replicas, f, 1, 1024); }},
    {"pipeline_parallel",
     [](const Node& v, TargetConfig& s, Faults& f) { read_count(v, s.pipeline_parallel, f, 1, 1024); }},
    {"device", [](const Node& v, TargetConfig& s, Faults& f) { read_enum(v, s.device, f, kDeviceWords); }},
    {"numa_nodes", [](const Node& v, TargetConfig& s, Faults& f) { read_numa_nodes(v, s.numa_nodes, f); }},
    {"gpus", [](const Node& v, TargetConfig& s, Faults& f) { read_count(v, s.gpus, f, 1, 1024); }},
    {"rated_bytes_per_second", [](const Node& v, TargetConfig& s,
                                  Faults& f) { read_auto_bytes(v, s.rated_bytes_per_second, f, kRateMin, kRateMax); }},
    {"kv_cache_type", [](const Node& v, TargetConfig& s, Faults& f) { read_cache_type(v, s.kv_cache_type, f); }},
    {"weight_bits", [](const Node& v, TargetConfig& s, Faults& f) { read_auto_bytes(v, s.weight_bits, f, 1, 32); }},
    {"expert_skew", [](const Node& v, TargetConfig& s, Faults& f) { read_number(v, s.expert_skew, f, 0.01, 1); }},
    {"speculative", [](const Node& v, TargetConfig& s, Faults& f) { read_auto_bool(v, s.speculative, f); }},
    {"draft_model", [](const Node& v, TargetConfig& s, Faults& f) { read_text(v, s.draft_model, f, true); }},
    {"identify", [](const Node& v, TargetConfig& s, Faults& f) { read_auto_bool(v, s.identify, f); }},
    {"identify_token_file",
     [](const Node& v, TargetConfig& s, Faults& f) { read_text(v, s.identify_token_file, f, true); }},
    {"dense_bytes_per_pass",
     [](const Node& v, TargetConfig& s, Faults& f) { read_auto_bytes(v, s.dense_bytes_per_pass, f, 1, 1e15); }},
    {"head_bytes", [](const Node& v, TargetConfig& s, Faults& f) { read_auto_bytes(v, s.head_bytes, f, 0, 1e15); }},
    {"moe_layers", [](const Node& v, TargetConfig& s, Faults& f) { read_auto_count(v, s.moe_layers, f, 4096); }},
    {"experts", [](const Node& v, TargetConfig& s, Faults& f) { read_auto_count(v, s.experts, f, 65536); }},
    {"experts_per_token",
     [](const Node& v, TargetConfig& s, Faults& f) { read_auto_bytes(v, s.experts_per_token, f, 0.01, 65536); }},
    {"expert_bytes", [](const Node& v, TargetConfig& s, Faults& f) { read_auto_bytes(v, s.expert_bytes, f, 1, 1e15); }},
    {"kv_bytes_per_token",
     [](const Node& v, TargetConfig& s, Faults& f) { read_auto_bytes(v, s.kv_bytes_per_token, f, 0, 1e12); }},
    {"state_bytes_per_sequence",
     [](const Node& v, TargetConfig& s, Faults& f) { read_auto_bytes(v, s.state_bytes_per_sequence, f, 0, 1e15); }},
}};

}  // namespace

std::span<const Key<WebConfig>> web_keys() {
  return kWebKeys;
}
std::span<const Key<StateConfig>> state_keys() {
  return kStateKeys;
}
std::span<const Key<CaptureConfig>> capture_keys() {
  return kCaptureKeys;
}
std::span<const Key<ServerConfig>> server_keys() {
  return kServerKeys;
}
std::span<const Key<WindowsConfig>> windows_keys() {
  return kWindowsKeys;
}
std::span<const Key<CeilingConfig>> ceiling_keys() {
  return kCeilingKeys;
}
std::span<const Key<LimitsConfig>> limits_keys() {
  return kLimitsKeys;
}
std::span<const Key<TargetConfig>> target_keys() {
  return kTargetKeys;
}

}  // namespace rooflined::config
