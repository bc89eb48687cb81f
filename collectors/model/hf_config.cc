#include "collectors/model/hf_config.h"

#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace rooflined::model {
namespace {

using nlohmann::json;

constexpr std::size_t kValuesMax = 200'000;
constexpr int kDepthMax = 32;
constexpr double kNumberMax = 1e9;

// Where multimodal models keep their language model; a path for those that nest it twice.
constexpr std::array<std::string_view, 10> kTextParts = {"text_config",
                                                         "thinker_config.text_config",
                                                         "llm_config",
                                                         "language_config",
                                                         "language_model_config",
                                                         "text_model",
                                                         "language_model",
                                                         "llm.text_config",
                                                         "decoder_config",
                                                         "talker_config.text_config"};

// Python's json writes these bare words, and nothing else reads them. None of them matters to a shape.
std::string without_bare_words(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\' && at + 1 < text.size()) {
      out.append(text.substr(at, 2));
      ++at;
      continue;
    }
    if (c == '"') quoted = !quoted;
    const auto word = std::find_if(kWords.begin(), kWords.end(), [&](std::string_view each) {
      return !quoted && text.substr(at, each.size()) == each;
    });
    if (word != kWords.end()) {
      out += "null";
      at += word->size() - 1;
    } else {
      out += c;
    }
  }
  return out;
}

const json* at_path(const json& from, std::string_view path) {
  const json* here = &from;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    if (!here->is_object()) return nullptr;
    const auto found = here->find(std::string(path.substr(0, dot)));
    if (found == here->end() || found->is_null()) return nullptr;
    here = &*found;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return here;
}

std::optional<double> as_number(const json& value) {
  double number = 0;
  if (value.is_boolean()) {
    number = value.get<bool>() ? 1 : 0;
  } else if (value.is_number()) {
    number = value.get<double>();
  } else {
    return std::nullopt;
  }
  if (!(number >= 0 && number <= kNumberMax)) return std::nullopt;
  return number;
}

std::string word_of(const json& object, std::string_view key) {
  const json* value = at_path(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

}  // namespace

Result<json> parse_config_json(std::string_view text, const std::string& name) {
  if (text.size() > kConfigBytesMax) {
    return Error{ErrorCode::kLimit, name, fmt::format("longer than {} bytes", kConfigBytesMax)};
  }
  std::size_t values = 0;
  bool within = true;
  const auto bounded = [&](int depth, json::parse_event_t, json&) {
    within = within && depth <= kDepthMax && ++values <= kValuesMax;
    return within;
  };
  json parsed = json::parse(without_bare_words(text), bounded, false);
  if (!within) return Error{ErrorCode::kLimit, name, "too many values, or nested too deeply"};
  if (parsed.is_discarded()) return Error{ErrorCode::kInvalid, name, "not JSON"};
  if (!parsed.is_object()) return Error{ErrorCode::kInvalid, name, "not a JSON object"};
  return parsed;
}

HfConfig::HfConfig(json whole) : whole_(std::move(whole)), text_(&whole_) {
  for (const std::string_view part : kTextParts) {
    const json* inner = at_path(whole_, part);
    if (inner == nullptr || !inner->is_object() || inner->empty()) continue;
    text_ = inner;
    break;
  }
  outer_type_ = word_of(whole_, "model_type");
  type_ = word_of(*text_, "model_type");
  if (const json* classes = at_path(whole_, "architectures");
      classes != nullptr && classes->is_array() && !classes->empty() && classes->front().is_string()) {
    class_name_ = classes->front().get<std::string>();
  }
}

void HfConfig::set_defaults(std::string_view json_object) {
  if (!json_object.empty()) defaults_ = json::parse(json_object, nullptr, false);
}

const json* HfConfig::find(Keys keys) const {
  for (const json* part : {text_, &std::as_const(whole_)}) {
    for (const std::string_view key : keys) {
      if (const json* found = at_path(*part, key)) return found;
    }
  }
  return nullptr;
}

// An explicit null is an answer: no default stands in for it.
bool HfConfig::is_null(Keys keys) const {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return text_->contains(std::string(key)); });
}

const json* HfConfig::value(Keys keys) {
  if (const json* found = find(keys)) return found;
  if (!defaults_.is_object() || is_null(keys)) return nullptr;
  for (const std::string_view key : keys) {
    const json* found = at_path(defaults_, key);
    if (found == nullptr) continue;
    std::string note = fmt::format("{} {}", key, found->dump());
    if (std::find(defaults_used_.begin(), defaults_used_.end(), note) == defaults_used_.end()) {
      defaults_used_.push_back(std::move(note));
    }
    return found;
  }
  return nullptr;
}

void HfConfig::miss(std::string_view key) {
  if (std::find(missing_.begin(), missing_.end(), key) == missing_.end()) missing_.emplace_back(key);
}

std::optional<double> HfConfig::number(Keys keys, std::size_t layer) {
  const json* found = value(keys);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) return as_number(*found);
  return layer < found->size() ? as_number((*found)[layer]) : std::nullopt;
}

double HfConfig::need(Keys keys, std::size_t layer) {
  const double found = number(keys, layer).value_or(0);
  if (found == 0) miss(*keys.begin());
  return found;
}

std::size_t HfConfig::need_count(Keys keys, std::size_t limit) {
  const double found = need(keys);
  if (found == std::floor(found) && found <= static_cast<double>(limit)) return static_cast<std::size_t>(found);
  miss(*keys.begin());
  return 0;
}

bool HfConfig::flag(Keys keys, bool otherwise) {
  const json* found = value(keys);
  if (found == nullptr) return otherwise;
  return as_number(*found).value_or(otherwise ? 1 : 0) != 0;
}

std::string HfConfig::text(Keys keys) {
  const json* found = value(keys);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<double> HfConfig::numbers(Keys keys) {
  const json* found = value(keys);
  std::vector<double> list;
  if (found == nullptr || !found->is_array()) return list;
  for (const json& each : *found) list.push_back(as_number(each).value_or(0));
  return list;
}

std::vector<std::string> HfConfig::words(Keys keys) {
  const json* found = value(keys);
  std::vector<std::string> list;
  if (found == nullptr || !found->is_array()) return list;
  for (const json& each : *found) list.push_back(each.is_string() ? each.get<std::string>() : std::string());
  return list;
}

std::string HfConfig::word_at(Keys keys, std::size_t layer) const {
  const json* found = find(keys);
  if (found == nullptr || !found->is_array() || layer >= found->size() || !(*found)[layer].is_string()) return {};
  return (*found)[layer].get<std::string>();
}

}  // namespace rooflined::model
