#include "config/key.h"

#include "config/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rooflined::config {

namespace {

constexpr std::size_t kErrorsMax = 100;

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a float";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or a time";
  }
}

std::string expected(std::string_view what, const toml::node& node) {
  return fmt::format("expected {}, got {}", what, type_name(node));
}

bool is_auto(const toml::node& value) {
  const auto* text = value.as_string();
  return text != nullptr && text->get() == "auto";
}

std::string in_words(Duration duration) {
  struct Step {
    std::int64_t seconds;
    char unit;
  };
  const std::int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  for (const Step step : {Step{86400, 'd'}, Step{3600, 'h'}, Step{60, 'm'}, Step{1, 's'}}) {
    if (ms != 0 && ms % (step.seconds * 1000) == 0) return fmt::format("{}{}", ms / (step.seconds * 1000), step.unit);
  }
  return fmt::format("{}ms", ms);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

}  // namespace

void Faults::add(const toml::source_region& where, std::string message) {
  if (errors_.size() > kErrorsMax) return;
  if (errors_.size() == kErrorsMax) message = "more faults follow; they are not listed";
  errors_.push_back({where.begin.line, where.begin.column, std::move(message)});
}

std::vector<ConfigError> Faults::take() {
  std::stable_sort(errors_.begin(), errors_.end(), [](const ConfigError& a, const ConfigError& b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
  });
  return std::move(errors_);
}

void read_bool(const toml::node& value, bool& out, Faults& faults) {
  if (const auto* boolean = value.as_boolean()) {
    out = boolean->get();
  } else {
    faults.add(value, expected("true or false", value));
  }
}

void read_auto_bool(const toml::node& value, std::optional<bool>& out, Faults& faults) {
  if (is_auto(value)) {
    out.reset();
  } else if (const auto* boolean = value.as_boolean()) {
    out = boolean->get();
  } else {
    faults.add(value, expected("\"auto\", true or false", value));
  }
}

void read_text(const toml::node& value, std::string& out, Faults& faults, bool may_be_empty) {
  const auto* text = value.as_string();
  if (text == nullptr) {
    faults.add(value, expected("a string", value));
  } else if (text->get().empty() && !may_be_empty) {
    faults.add(value, "must not be empty");
  } else if (std::any_of(text->get().begin(), text->get().end(),
                         [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
    faults.add(value, "must not hold control characters");
  } else {
    out = text->get();
  }
}

void read_auto_text(const toml::node& value, std::string& out, Faults& faults) {
  read_text(value, out, faults, false);
  if (out == "auto") out.clear();
}

void read_count(const toml::node& value, unsigned& out, Faults& faults, std::int64_t low, std::int64_t high) {
  const auto* integer = value.as_integer();
  if (integer == nullptr) {
    faults.add(value, expected("an integer", value));
  } else if (integer->get() < low || integer->get() > high) {
    faults.add(value, fmt::format("{} is not between {} and {}", integer->get(), low, high));
  } else {
    out = static_cast<unsigned>(integer->get());
  }
}

void read_auto_count(const toml::node& value, std::optional<unsigned>& out, Faults& faults, std::int64_t high) {
  const auto* integer = value.as_integer();
  if (is_auto(value)) {
    out.reset();
  } else if (integer == nullptr) {
    faults.add(value, expected("\"auto\" or an integer", value));
  } else if (integer->get() < 0 || integer->get() > high) {
    faults.add(value, fmt::format("{} is not between 0 and {}", integer->get(), high));
  } else {
    out = static_cast<unsigned>(integer->get());
  }
}

void read_port(const toml::node& value, std::uint16_t& out, Faults& faults) {
  unsigned port = 0;
  read_count(value, port, faults, 1, 65535);
  if (port != 0) out = static_cast<std::uint16_t>(port);
}

void read_duration(const toml::node& value, Duration& out, Faults& faults, Duration low, Duration high) {
  const auto* text = value.as_string();
  if (text == nullptr) {
    faults.add(value, expected("a duration with a unit, as in \"60s\" or \"6h\"", value));
    return;
  }
  const auto duration = parse_duration(text->get());
  if (!duration) {
    faults.add(value, fmt::format("\"{}\" is no duration: write a number and one of ms, s, m, h, d, w, as in \"60s\"",
                                  text->get()));
  } else if (*duration < low || *duration > high) {
    faults.add(value, fmt::format("\"{}\" is not between {} and {}", text->get(), in_words(low), in_words(high)));
  } else {
    out = *duration;
  }
}

void read_number(const toml::node& value, double& out, Faults& faults, double low, double high) {
  const auto number = value.is_number() ? value.value<double>() : std::nullopt;
  if (!number) {
    faults.add(value, expected("a number", value));
  } else if (!(*number >= low && *number <= high)) {
    faults.add(value, fmt::format("{} is not between {} and {}", *number, low, high));
  } else {
    out = *number;
  }
}

void read_auto_bytes(const toml::node& value, std::optional<double>& out, Faults& faults, double low, double high) {
  if (is_auto(value)) {
    out.reset();
    return;
  }
  std::optional<double> bytes;
  if (value.is_number()) {
    bytes = value.value<double>();
  } else if (const auto* text = value.as_string()) {
    bytes = parse_bytes(text->get());
    if (!bytes) {
      faults.add(value, fmt::format("\"{}\" is no size: write \"auto\", a number of bytes, or one with a unit as in "
                                    "\"2GiB\" or \"204.8GB\"",
                                    text->get()));
      return;
    }
  } else {
    faults.add(value, expected("\"auto\", a number of bytes, or one with a unit as in \"2GiB\"", value));
    return;
  }
  if (!bytes || !(*bytes >= low && *bytes <= high)) {
    faults.add(value, fmt::format("{} bytes are not between {} and {}", bytes.value_or(0), low, high));
  } else {
    out = bytes;
  }
}

std::optional<std::size_t> read_word(const toml::node& value, std::span<const std::string_view> words, Faults& faults) {
  const std::string list = fmt::format("\"{}\"", fmt::join(words, "\", \""));
  const auto* text = value.as_string();
  if (text == nullptr) {
    faults.add(value, expected("one of " + list, value));
    return std::nullopt;
  }
  const auto found = std::find(words.begin(), words.end(), text->get());
  if (found == words.end()) {
    faults.add(value, fmt::format("\"{}\" is none of {}", text->get(), list));
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - words.begin());
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t kWordMax = 64;  // the distance costs the product of the lengths
  if (word.size() > kWordMax) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace rooflined::config
