#include "config/reader.h"

#include "config/sections.h"

#include <fmt/format.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

namespace rooflined::config {

namespace {

constexpr std::size_t kTextMax = 1024 * 1024;
constexpr std::size_t kTargetsMax = 256;

void add_unknown(const toml::key& key, std::string_view prefix, const std::vector<std::string_view>& candidates,
                 Faults& faults) {
  const std::string_view like = nearest(key.str(), candidates);
  std::string hint;
  if (!like.empty()) {
    hint = fmt::format("did you mean \"{}\"?", like);
  } else {
    hint = fmt::format("known are {}", fmt::join(candidates, ", "));
  }
  faults.add(key.source(),
             fmt::format("unknown key \"{}\"{}{}: {}", key.str(), prefix.empty() ? "" : " in ", prefix, hint));
}

template <typename Section>
void read_table(const toml::table& table, std::string_view title, std::span<const Key<Section>> keys, Section& section,
                Faults& faults) {
  for (const auto& [key, value] : table) {
    const Key<Section>* known = nullptr;
    for (const Key<Section>& candidate : keys) {
      if (candidate.name == key.str()) known = &candidate;
    }
    if (known != nullptr) {
      known->read(value, section, faults);
      continue;
    }
    std::vector<std::string_view> candidates;
    for (const Key<Section>& candidate : keys) candidates.push_back(candidate.name);
    add_unknown(key, title, candidates, faults);
  }
}

void read_targets(const toml::node& node, std::vector<TargetConfig>& targets, Faults& faults) {
  const auto* array = node.as_array();
  if (array == nullptr || (!array->empty() && !array->is_array_of_tables())) {
    faults.add(node, "expected tables: write [[target]] with two brackets on each side");
    return;
  }
  if (array->size() > kTargetsMax) {
    faults.add(node, fmt::format("{} targets are more than {}", array->size(), kTargetsMax));
    return;
  }
  std::map<std::string, std::uint32_t, std::less<>> name_lines;
  std::map<std::uint16_t, std::uint32_t> port_lines;
  for (const toml::node& element : *array) {
    const toml::table& table = *element.as_table();
    TargetConfig target;
    read_table(table, "[[target]]", target_keys(), target, faults);
    const toml::node* name = table.get("name");
    const toml::node* port = table.get("port");
    if (name == nullptr) faults.add(table, "a target needs a name");
    if (port == nullptr) faults.add(table, "a target needs a port");
    if (name != nullptr && !target.name.empty()) {
      const auto [first, added] = name_lines.emplace(target.name, name->source().begin.line);
      if (!added) faults.add(*name, fmt::format("the name \"{}\" is taken by line {}", target.name, first->second));
    }
    if (port != nullptr && target.port != 0) {
      const auto [first, added] = port_lines.emplace(target.port, port->source().begin.line);
      if (!added)
        faults.add(*port, fmt::format("port {} is taken by the target of line {}", target.port, first->second));
    }
    if (target.device == Device::kCpu) {
      for (const std::string_view key : {"gpus", "rated_bytes_per_second"}) {
        if (const toml::node* value = table.get(key)) {
          faults.add(*value, fmt::format("{} has no meaning with device = \"cpu\"", key));
        }
      }
    }
    targets.push_back(std::move(target));
  }
}

template <typename Section>
void read_section(const toml::node& node, std::string_view title, std::span<const Key<Section>> keys, Section& section,
                  Faults& faults) {
  if (const auto* table = node.as_table()) {
    read_table(*table, title, keys, section, faults);
  } else {
    faults.add(node, fmt::format("expected a table: write {}", title));
  }
}

void check_combinations(const toml::table& root, const Config& config, Faults& faults) {
  if (config.web.tls_certificate.empty() != config.web.tls_key.empty()) {
    if (const toml::node* web = root.get("web")) {
      faults.add(*web, "tls_certificate and tls_key belong together");
    }
  }
  if (config.ceiling.max_age < config.ceiling.interval) {
    const toml::table* ceiling = root["ceiling"].as_table();
    const toml::node* place = ceiling == nullptr ? nullptr : ceiling->get("max_age");
    if (place == nullptr && ceiling != nullptr) place = ceiling->get("interval");
    if (place != nullptr) faults.add(*place, "max_age must not be shorter than interval");
  }
}

constexpr std::array<std::string_view, 8> kSections = {"web",     "state",   "capture", "server",
                                                       "windows", "ceiling", "limits",  "target"};

void read_root(const toml::table& root, Config& config, Faults& faults) {
  for (const auto& [key, value] : root) {
    const std::string_view name = key.str();
    if (name == "web") {
      read_section(value, "[web]", web_keys(), config.web, faults);
    } else if (name == "state") {
      read_section(value, "[state]", state_keys(), config.state, faults);
    } else if (name == "capture") {
      read_section(value, "[capture]", capture_keys(), config.capture, faults);
    } else if (name == "server") {
      read_section(value, "[server]", server_keys(), config.server, faults);
    } else if (name == "windows") {
      read_section(value, "[windows]", windows_keys(), config.windows, faults);
    } else if (name == "ceiling") {
      read_section(value, "[ceiling]", ceiling_keys(), config.ceiling, faults);
    } else if (name == "limits") {
      read_section(value, "[limits]", limits_keys(), config.limits, faults);
    } else if (name == "target") {
      read_targets(value, config.targets, faults);
    } else {
      add_unknown(key, "", {kSections.begin(), kSections.end()}, faults);
    }
  }
  check_combinations(root, config, faults);
}

template <typename Section>
void add_keys(std::vector<std::string>& out, std::string_view section, std::span<const Key<Section>> keys) {
  for (const Key<Section>& key : keys) out.push_back(fmt::format("{}.{}", section, key.name));
}

// toml++ nests a table for each part of a dotted key, and its recursion ends at tens of thousands. No line of ours has
// more than a few dots; a table of users may have one in each hash.
std::uint32_t line_with_too_many_dots(std::string_view text) {
  constexpr std::size_t kDotsMax = 1000;
  std::uint32_t line = 1;
  std::size_t dots = 0;
  for (const char character : text) {
    if (character == '\n') {
      ++line;
      dots = 0;
    } else if (character == '.' && ++dots > kDotsMax) {
      return line;
    }
  }
  return 0;
}

}  // namespace

std::string ConfigError::text(std::string_view file) const {
  return line == 0 ? fmt::format("{}: {}", file, message) : fmt::format("{}:{}:{}: {}", file, line, column, message);
}

ConfigResult read_config_text(std::string_view text) {
  ConfigResult result;
  if (text.size() > kTextMax) {
    result.errors.push_back({0, 0, "the file is larger than 1 MiB"});
    return result;
  }
  if (const std::uint32_t line = line_with_too_many_dots(text); line != 0) {
    result.errors.push_back({line, 1, "more than 1000 dots in a line"});
    return result;
  }
  try {
    Faults faults;
    const toml::table root = toml::parse(text);
    read_root(root, result.config, faults);
    result.errors = faults.take();
  } catch (const toml::parse_error& error) {
    const auto& where = error.source().begin;
    result.errors.push_back({where.line, where.column, std::string(error.description())});
  } catch (const std::exception& error) {
    result.errors.push_back({0, 0, error.what()});
  }
  return result;
}

ConfigResult read_config_file(const std::string& path) {
  ConfigResult result;
  std::error_code status_error;
  const std::filesystem::file_status status = std::filesystem::status(path, status_error);
  if (std::filesystem::is_fifo(status) || std::filesystem::is_socket(status)) {
    result.errors.push_back({0, 0, "not a file"});  // opening it would wait for a writer
    return result;
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(kTextMax + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
  }
  // A folder opens, and fails at the first read.
  if (!file && !file.eof()) {
    const int number = errno;
    result.missing = number == ENOENT;
    result.errors.push_back({0, 0, number == 0 ? "cannot be read" : std::generic_category().message(number)});
    return result;
  }
  return read_config_text(text);
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  add_keys(keys, "web", web_keys());
  add_keys(keys, "state", state_keys());
  add_keys(keys, "capture", capture_keys());
  add_keys(keys, "server", server_keys());
  add_keys(keys, "windows", windows_keys());
  add_keys(keys, "ceiling", ceiling_keys());
  add_keys(keys, "limits", limits_keys());
  add_keys(keys, "target", target_keys());
  return keys;
}

}  // namespace rooflined::config
