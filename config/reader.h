// Reads the settings file: TOML in, Config and every fault at once out. Never throws.
//
// A fault names line and column and says what would be right. Faults leave the default in place, so that the rest is
// still checked. Bounds: 1 MiB of text, 100 faults. Thread rule: pure functions.

#pragma once

#include "config/config.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::config {

struct ConfigError {
  std::uint32_t line = 0;  // from 1; 0 where the file as a whole is at fault
  std::uint32_t column = 0;
  std::string message;

  // "file:line:column: message"
  std::string text(std::string_view file) const;
};

struct ConfigResult {
  Config config;
  std::vector<ConfigError> errors;  // in the order of the file; empty: `config` may be used
  bool missing = false;             // the file does not exist (then `errors` says so)

  bool ok() const { return errors.empty(); }
};

ConfigResult read_config_text(std::string_view text);
ConfigResult read_config_file(const std::string& path);

// Every key that is known, as "web.listen", "target.name", in the order of the example file.
std::vector<std::string> known_keys();

}  // namespace rooflined::config
