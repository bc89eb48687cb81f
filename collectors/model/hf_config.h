// The fields of a Hugging Face config.json that describe the language model, under whatever names and nesting.
//
//   in:   the text of config.json (`Infinity` and `NaN` included, which Python writes and JSON does not have)
//   out:  numbers, flags, words and lists, by any of several keys; what was missing, and what came from class defaults
//
// Keys may be paths ("attn_config.kv_n_heads"). The language model's own object (text_config, llm_config, …) is asked
// first and the outer one second. Transformers leaves out values that equal its class defaults; a family may name such
// defaults, and each one used is reported. Bounds: 2 MiB of text, 200,000 values, 32 levels. Thread rule: plain data.

#pragma once

#include "metrics/base/result.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::model {

inline constexpr std::size_t kConfigBytesMax = 2 * 1024 * 1024;

// JSON as Python writes it, bounded as above. `name` opens the error message.
Result<nlohmann::json> parse_config_json(std::string_view text, const std::string& name);

// Names of one key, the likeliest first: {"a", "b"} or a constant array, at most kMax of them.
class Keys {
 public:
  static constexpr std::size_t kMax = 20;

  Keys(std::initializer_list<std::string_view> names) : count_(names.size()) {  // NOLINT(google-explicit-constructor)
    ROOFLINED_CHECK(count_ <= kMax);
    std::copy(names.begin(), names.end(), names_.begin());
  }
  template <std::size_t N>
  Keys(const std::array<std::string_view, N>& names) : count_(N) {  // NOLINT(google-explicit-constructor)
    static_assert(N <= kMax);
    std::copy(names.begin(), names.end(), names_.begin());
  }

  const std::string_view* begin() const noexcept { return names_.data(); }
  const std::string_view* end() const noexcept { return names_.data() + count_; }

 private:
  std::array<std::string_view, kMax> names_;
  std::size_t count_;
};

class HfConfig {
 public:
  // Requires: `whole` is an object.
  explicit HfConfig(nlohmann::json whole);
  HfConfig(const HfConfig&) = delete;
  HfConfig& operator=(const HfConfig&) = delete;

  // `model_type` of the language model and of the whole; the class name in `architectures`. Empty where absent.
  const std::string& type() const noexcept { return type_; }
  const std::string& outer_type() const noexcept { return outer_type_; }
  const std::string& class_name() const noexcept { return class_name_; }

  // Values of the family's class, for keys that are absent.
  void set_defaults(std::string_view json_object);

  // Whether the key is there and not null (class defaults aside).
  bool has(Keys keys) const { return find(keys) != nullptr; }
  // A number in [0, 1e9]; of a list the element of `layer`.
  std::optional<double> number(Keys keys, std::size_t layer = 0);
  double number_or(Keys keys, double otherwise, std::size_t layer = 0) {
    return number(keys, layer).value_or(otherwise);
  }
  // The same where the model cannot be described without it: 0 and noted in missing() where absent or 0.
  double need(Keys keys, std::size_t layer = 0);
  // A bound on loops: need(), at most `limit`.
  std::size_t need_count(Keys keys, std::size_t limit);
  bool flag(Keys keys, bool otherwise);
  std::string text(Keys keys);
  // Lists of numbers (flags are 0 and 1) and of words; empty where absent or anything else.
  std::vector<double> numbers(Keys keys);
  std::vector<std::string> words(Keys keys);
  // The word of one layer, of a list; empty where there is none.
  std::string word_at(Keys keys, std::size_t layer) const;
  // nullptr where absent. The object lives as long as this.
  const nlohmann::json* find(Keys keys) const;

  const std::vector<std::string>& missing() const noexcept { return missing_; }
  // "num_hidden_layers 32"
  const std::vector<std::string>& defaults_used() const noexcept { return defaults_used_; }

 private:
  const nlohmann::json* value(Keys keys);
  bool is_null(Keys keys) const;
  void miss(std::string_view key);

  nlohmann::json whole_;
  const nlohmann::json* text_ = nullptr;  // the language model's object, inside whole_
  nlohmann::json defaults_;
  std::string type_;
  std::string outer_type_;
  std::string class_name_;
  std::vector<std::string> missing_;
  std::vector<std::string> defaults_used_;
};

}  // namespace rooflined::model
