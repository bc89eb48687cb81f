#include "collectors/model/hf_quantisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace rooflined::model {
namespace {

using nlohmann::json;

constexpr std::size_t kPatternsMax = 8192;  // each is tried on four modules of every layer
constexpr std::size_t kPatternBytesMax = 256;
constexpr std::size_t kAlternativesMax = 64;

double number_in(const json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return otherwise;
  const double number = found->get<double>();
  return number > 0 && number < 1e9 ? number : otherwise;
}

std::string word_in(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  std::string word = found->get<std::string>();
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return word;
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t at = 0;
  std::size_t in = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (in < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = in;
    } else if (at < pattern.size() && pattern[at] == text[in]) {
      ++at;
      ++in;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in = ++resume;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(at), pattern.end(), [](char c) { return c == '*'; });
}

// A regular expression of the kinds that checkpoints use, as globs: ".*", "\.", "\d+" and "(a|b)". Anything else in it
// matches itself. Regular expressions from outside are never run.
std::vector<std::string> globs_of(const std::string& pattern) {
  std::vector<std::string> open = {pattern};
  std::vector<std::string> done;
  while (!open.empty() && open.size() + done.size() <= kAlternativesMax) {
    std::string one = std::move(open.back());
    open.pop_back();
    const std::size_t close = one.find(')');
    const std::size_t begin = close == std::string::npos ? close : one.rfind('(', close);
    if (begin == std::string::npos) {
      done.push_back(std::move(one));
      continue;
    }
    std::string_view inside = std::string_view(one).substr(begin + 1, close - begin - 1);
    if (inside.starts_with("?:")) inside.remove_prefix(2);
    for (;;) {
      const std::size_t bar = inside.find('|');
      open.push_back(one.substr(0, begin) + std::string(inside.substr(0, bar)) + one.substr(close + 1));
      if (bar == std::string_view::npos || open.size() > kAlternativesMax) break;
      inside.remove_prefix(bar + 1);
    }
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kReplacements = {
      {{".*", "*"}, {".+", "*"}, {"\\d+", "*"}, {"\\d*", "*"}, {"[0-9]+", "*"}, {"\\.", "."}, {"^", ""}, {"$", ""}}};
  for (std::string& one : done) {
    std::string glob;
    for (std::size_t at = 0; at < one.size();) {
      const auto found = std::find_if(kReplacements.begin(), kReplacements.end(), [&](const auto& each) {
        return std::string_view(one).substr(at, each.first.size()) == each.first;
      });
      glob += found == kReplacements.end() ? std::string_view(one).substr(at, 1) : found->second;
      at += found == kReplacements.end() ? 1 : found->first.size();
    }
    one = std::move(glob);
  }
  return done;
}

void add_left_out(HfQuantisation& quantisation, const json& object) {
  for (const char* key : {"modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude",
                          "llm_int8_skip_modules", "exclude_layers"}) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array()) continue;
    for (const json& each : *found) {
      if (!each.is_string()) continue;
      quantisation.left_out_cut = quantisation.left_out.size() >= kPatternsMax;
      if (quantisation.left_out_cut) break;
      const std::string text = each.get<std::string>();
      if (text.size() > kPatternBytesMax) continue;
      if (!text.starts_with("re:")) {
        quantisation.left_out.push_back(text);
        continue;
      }
      for (std::string& glob : globs_of(text.substr(3))) quantisation.left_out.push_back(std::move(glob));
    }
  }
}

// compressed-tensors: the first group that has weights; a model with groups of different widths is rare.
void read_groups(HfQuantisation& quantisation, const json& object) {
  quantisation.known = false;
  const auto groups = object.find("config_groups");
  if (groups == object.end() || !groups->is_object()) return;
  const std::string format = word_in(object, "format");
  for (const auto& [name, group] : groups->items()) {
    if (!group.is_object()) continue;
    const auto weights = group.find("weights");
    if (weights == group.end() || !weights->is_object()) continue;
    const double bits = number_in(*weights, "num_bits", 0);
    if (bits <= 0 || bits > 32) continue;
    const double size = number_in(*weights, "group_size", 0);
    // A scale for each group: 8 bits for the 4-bit float formats, else 16; one for each row or tensor is next to
    // nothing.
    const double scale = format.find("fp4") != std::string::npos ? 8 : 16;
    quantisation.weight_bits = bits + (size > 0 ? scale / size : 0);
    quantisation.known = true;
    return;
  }
}

void read_fp8(HfQuantisation& quantisation, const json& object) {
  quantisation.weight_bits = 8;
  const auto block = object.find("weight_block_size");
  if (block == object.end() || !block->is_array() || block->size() != 2) return;
  const double elements = ((*block)[0].is_number() ? (*block)[0].get<double>() : 0) *
                          ((*block)[1].is_number() ? (*block)[1].get<double>() : 0);
  if (elements >= 1) quantisation.weight_bits += 32 / elements;
}

void read_method(HfQuantisation& quantisation, const json& object) {
  const std::string& method = quantisation.method;
  const double group = number_in(object, "group_size", 0);
  if (method == "fp8" || method == "fbgemm_fp8") {
    read_fp8(quantisation, object);
  } else if (method == "awq" || method == "gptq" || method == "auto-round" || method == "intel/auto-round") {
    const double bits = number_in(object, "bits", number_in(object, "w_bit", 4));
    quantisation.weight_bits = bits + (group > 0 ? (16 + bits) / group : 0);
  } else if (method == "compressed-tensors" || method == "compressed_tensors") {
    read_groups(quantisation, object);
  } else if (method == "mxfp4") {
    quantisation.weight_bits = 4 + 8.0 / 32;
    quantisation.experts_only = true;
  } else if (method == "bitsandbytes") {
    const auto flag = object.find("load_in_4bit");
    const bool four = flag != object.end() && flag->is_boolean() && flag->get<bool>();
    quantisation.weight_bits = four ? 4.5 : 8;
  } else if (method == "modelopt") {
    const std::string kind = word_in(object, "quant_algo");
    quantisation.weight_bits = kind.find("fp4") != std::string::npos ? 4 + 8.0 / 16 : 8;
    quantisation.known = !kind.empty();
  } else if (method == "bitnet") {
    quantisation.weight_bits = 2;  // four ternary weights in a byte
  } else if (method == "eetq") {
    quantisation.weight_bits = 8;
  } else {
    const double bits = number_in(object, "bits", number_in(object, "nbits", 0));
    quantisation.known = bits > 0 && bits <= 32;
    quantisation.weight_bits = bits + (group > 0 ? 16 / group : 0);
  }
}

}  // namespace

bool HfQuantisation::converts(std::string_view module) const {
  if (method.empty()) return false;
  if (experts_only && module.find(".experts") == std::string_view::npos) return false;
  return std::none_of(left_out.begin(), left_out.end(), [&](const std::string& each) {
    if (each.find('*') != std::string::npos) return glob_matches(each, module) || glob_matches(each + ".*", module);
    if (each.empty()) return false;
    // A part of the name, from dot to dot: "gate" is not "gate_proj".
    for (std::size_t at = module.find(each); at != std::string_view::npos; at = module.find(each, at + 1)) {
      const std::size_t end = at + each.size();
      if ((at == 0 || module[at - 1] == '.') && (end == module.size() || module[end] == '.')) return true;
    }
    return false;
  });
}

HfQuantisation read_quantisation(const HfConfig& config) {
  HfQuantisation quantisation;
  const json* object = config.find({"quantization_config", "compression_config"});
  if (object == nullptr || !object->is_object()) return quantisation;
  quantisation.method = word_in(*object, "quant_method");
  if (quantisation.method.empty())
    quantisation.method = object->contains("quant_algo") ? "modelopt" : "of an unknown kind";
  read_method(quantisation, *object);
  if (const json* type = config.find({"expert_dtype"}); type != nullptr && type->is_string() && *type == "fp4") {
    quantisation.expert_bits = 4 + 8.0 / 32;
  }
  if (quantisation.known && !quantisation.method.empty())
    quantisation.packed_bits = std::floor(quantisation.weight_bits);
  add_left_out(quantisation, *object);
  return quantisation;
}

double bytes_of_torch_type(std::string_view word) {
  if (word.starts_with("torch.")) word.remove_prefix(6);
  if (word == "bfloat16" || word == "float16" || word == "half") return 2;
  if (word == "float32" || word == "float") return 4;
  if (word.starts_with("float8")) return 1;
  return 0;
}

}  // namespace rooflined::model
