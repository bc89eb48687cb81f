#include "collectors/model/gguf_model.h"

#include <array>

namespace rooflined::model {
namespace {

// What llama-quantize and its users append to a type's name; the longest first.
constexpr std::array<std::string_view, 7> kSuffixes = {"_XXL", "_XL", "_XS", "_MOE", "_S", "_M", "_L"};
// Mixtures named after no single type.
constexpr std::array<std::string_view, 4> kMixtures = {"IQ3_XS", "IQ3_M", "IQ2_M", "IQ1_L"};

bool is_word(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// True where `label` stands in `name` as a word of its own; an underscore before it is fine ("model_q4_0").
bool has_word(std::string_view name, std::string_view label) {
  for (std::size_t at = name.find(label); at != std::string_view::npos; at = name.find(label, at + 1)) {
    const bool begins = at == 0 || !is_word(name[at - 1]) || name[at - 1] == '_';
    const std::size_t end = at + label.size();
    if (begins && (end == name.size() || !is_word(name[end]))) return true;
  }
  return false;
}

}  // namespace

std::string label_of_file_name(std::string_view file_name) {
  file_name.remove_prefix(file_name.rfind('/') + 1);  // npos + 1 is 0
  std::string upper;
  for (const char c : file_name) upper.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  std::string best;
  const auto consider = [&](std::string_view label) {
    if (label.size() > best.size() && has_word(upper, label)) best = label;
  };
  for (const std::string_view mixture : kMixtures) consider(mixture);
  for (const GgmlType& type : ggml_types()) {
    // Integers are no quantisation, and "I8" would be found in many a name.
    if (type.removed() || (type.name.front() == 'I' && type.name[1] != 'Q')) continue;
    consider(type.name);
    for (const std::string_view suffix : kSuffixes) consider(std::string(type.name) + std::string(suffix));
  }
  return best;
}

const GgmlType* type_of_label(std::string_view label) {
  if (const GgmlType* type = ggml_type_by_name(label)) return type;
  const std::size_t underscore = label.rfind('_');
  return underscore == std::string_view::npos ? nullptr : ggml_type_by_name(label.substr(0, underscore));
}

}  // namespace rooflined::model
