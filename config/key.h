// How one setting is read: its name, and a function that takes its TOML value into a struct. Used by the reader only.

#pragma once

#include "config/reader.h"

#include <toml++/toml.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::config {

// Collects faults; knows the place of every node.
class Faults {
 public:
  void add(const toml::source_region& where, std::string message);
  void add(const toml::node& node, std::string message) { add(node.source(), std::move(message)); }
  std::vector<ConfigError> take();

 private:
  std::vector<ConfigError> errors_;
};

template <typename Section>
struct Key {
  std::string_view name;
  void (*read)(const toml::node& value, Section& section, Faults& faults);
};

// Each leaves `out` alone and adds a fault when the value is of the wrong type or impossible.
void read_bool(const toml::node& value, bool& out, Faults& faults);
// "auto" or true or false.
void read_auto_bool(const toml::node& value, std::optional<bool>& out, Faults& faults);
// Without control characters; empty only where allowed.
void read_text(const toml::node& value, std::string& out, Faults& faults, bool may_be_empty);
// "auto" is stored as an empty string.
void read_auto_text(const toml::node& value, std::string& out, Faults& faults);
void read_count(const toml::node& value, unsigned& out, Faults& faults, std::int64_t low, std::int64_t high);
// "auto", or an integer from 0 on.
void read_auto_count(const toml::node& value, std::optional<unsigned>& out, Faults& faults, std::int64_t high);
void read_port(const toml::node& value, std::uint16_t& out, Faults& faults);
void read_duration(const toml::node& value, Duration& out, Faults& faults, Duration low, Duration high);
void read_number(const toml::node& value, double& out, Faults& faults, double low, double high);
// "auto", a number of bytes, or a number with a unit.
void read_auto_bytes(const toml::node& value, std::optional<double>& out, Faults& faults, double low, double high);

// The index of the word that `value` is; nullopt and a fault that lists them otherwise.
std::optional<std::size_t> read_word(const toml::node& value, std::span<const std::string_view> words, Faults& faults);

// The candidate with the fewest edits from `word`, where that is a likely slip; empty otherwise.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace rooflined::config
