#include "tests/simulator/change_option.h"

#include "tests/simulator/option_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

namespace rooflined::simulator {
namespace {

constexpr double kRestartSeconds = 1;

// A number in the unit of `unit`, in [least, most].
std::optional<double> number(std::string_view text, const CLI::Validator& unit, double least, double most) {
  std::string value(text);
  try {
    if (!unit(value).empty()) return std::nullopt;
  } catch (const CLI::Error&) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double parsed = std::strtod(value.c_str(), &end);
  if (end == value.c_str() || *end != '\0' || !(parsed >= least && parsed <= most)) return std::nullopt;
  return parsed;
}

CLI::Validator plain() {
  return CLI::Validator([](std::string&) { return std::string(); }, "");
}

constexpr double kLeast = 1e-9;
constexpr double kMost = 1e18;
constexpr double kSecondsMax = 3.2e7;

struct Key {
  std::string_view name;
  bool of_load;
  bool (*set)(std::string_view value, Change& change);
};

template <typename T>
bool take(std::optional<double> value, std::optional<T>& into) {
  if (value) into = static_cast<T>(*value);
  return value.has_value();
}

bool take_lengths(std::string_view value, std::optional<Lengths>& into) {
  auto lengths = Lengths::parse(value);
  if (!lengths) return false;
  into = std::move(*lengths);
  return true;
}

constexpr std::array<Key, 11> kKeys = {{
    {"bandwidth", false,
     [](std::string_view v, Change& c) { return take(number(v, bytes_unit(), kLeast, kMost), c.bandwidth); }},
    {"efficiency", false,
     [](std::string_view v, Change& c) { return take(number(v, plain(), kLeast, 1), c.efficiency); }},
    {"prefill-rate", false,
     [](std::string_view v, Change& c) { return take(number(v, plain(), 0, kMost), c.prefill_tokens_per_second); }},
    {"overhead", false,
     [](std::string_view v, Change& c) {
       return take(number(v, duration_unit(), 0, kSecondsMax), c.overhead_seconds);
     }},
    {"restart", false,
     [](std::string_view v, Change& c) { return take(number(v, duration_unit(), 0, kSecondsMax), c.restart_seconds); }},
    {"version", false,
     [](std::string_view v, Change& c) {
       c.version = std::string(v);
       if (!c.restart_seconds) c.restart_seconds = kRestartSeconds;
       return !v.empty();
     }},
    {"warm-up", false,
     [](std::string_view v, Change& c) {
       const auto seconds = number(v, duration_unit(), 0, kSecondsMax);
       c.warm_up_seconds = seconds.value_or(0);
       return seconds.has_value();
     }},
    {"concurrency", true,
     [](std::string_view v, Change& c) { return take(number(v, plain(), 0, 4096), c.concurrency); }},
    {"rate", true, [](std::string_view v, Change& c) { return take(number(v, plain(), kLeast, 1e6), c.rate); }},
    {"prompt-tokens", true, [](std::string_view v, Change& c) { return take_lengths(v, c.prompt_tokens); }},
    {"output-tokens", true, [](std::string_view v, Change& c) { return take_lengths(v, c.output_tokens); }},
}};

Result<Change> parse(std::string_view text, bool with_load) {
  const auto bad = [text](const std::string& detail) {
    return Error{ErrorCode::kInvalid, "--change " + std::string(text), detail};
  };
  const std::size_t colon = text.find(':');
  const auto at = number(text.substr(0, colon), duration_unit(), 0, kSecondsMax);
  if (!at || colon == std::string_view::npos) return bad("TIME:KEY=VALUE[,KEY=VALUE…] is needed, TIME as in 90s");
  Change change;
  change.at_seconds = *at;
  for (std::string_view rest = text.substr(colon + 1); !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::size_t equal = std::min(pair.find('='), pair.size());
    const auto* const key = std::ranges::find(kKeys, pair.substr(0, equal), &Key::name);
    if (key == kKeys.end() || (key->of_load && !with_load)) {
      std::vector<std::string_view> names;
      for (const Key& one : kKeys) {
        if (with_load || !one.of_load) names.push_back(one.name);
      }
      return bad(fmt::format("{} cannot change; {} can", pair.substr(0, equal), fmt::join(names, ", ")));
    }
    if (equal == pair.size() || !key->set(pair.substr(equal + 1), change)) {
      return bad(fmt::format("{} needs a value that it can have", key->name));
    }
  }
  return change;
}

}  // namespace

Result<std::vector<Change>> parse_changes(const std::vector<std::string>& texts, bool with_load) {
  std::vector<Change> changes;
  for (const std::string& text : texts) {
    auto change = parse(text, with_load);
    if (!change) return change.error();
    changes.push_back(std::move(*change));
  }
  std::ranges::stable_sort(changes, {}, &Change::at_seconds);
  return changes;
}

}  // namespace rooflined::simulator
