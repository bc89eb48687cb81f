#include "collectors/model/gguf_tensors.h"

#include <array>
#include <charconv>

namespace rooflined::model {
namespace {

constexpr std::array<std::string_view, 3> kLookups = {"per_layer_token_embd.", "position_embd.", "token_types."};
constexpr std::array<std::string_view, 6> kForeign = {"enc.", "v.", "a.", "mm.", "resampler.", "cls."};

// "ffn_gate.7.weight": true where a number stands between the dots.
bool is_single_expert(std::string_view rest) {
  for (const std::string_view base : {"ffn_gate.", "ffn_up.", "ffn_down."}) {
    if (!rest.starts_with(base)) continue;
    const std::string_view number = rest.substr(base.size());
    const std::size_t digits = number.find_first_not_of("0123456789");
    return digits != 0 && digits != std::string_view::npos && number[digits] == '.';
  }
  return false;
}

TensorUse block_use(std::string_view rest, std::uint64_t block) {
  TensorUse use;
  use.in_block = true;
  use.block = block;
  use.role = TensorRole::kRepeating;
  use.next_token_part = rest.starts_with("nextn.");
  if (rest.find("_chexps.") != std::string_view::npos) {
    use.role = TensorRole::kExpert;
    use.chunk_expert = true;
  } else if (rest.find("_exps.") != std::string_view::npos) {
    use.role = TensorRole::kExpert;
  } else if (is_single_expert(rest)) {
    use.role = TensorRole::kSingleExpert;
  } else if (rest.starts_with("rope_freqs.") || rest.starts_with("rope_factors_") ||
             rest.starts_with("attn_rot_embd.")) {
    use.role = TensorRole::kConstant;
  }
  return use;
}

}  // namespace

TensorUse tensor_use(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  TensorUse use;
  if (name.starts_with(kBlock)) {
    const std::string_view rest = name.substr(kBlock.size());
    std::uint64_t block = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), block);
    const std::size_t digits = static_cast<std::size_t>(end - rest.data());
    if (error == std::errc{} && digits < rest.size() && rest[digits] == '.') {
      return block_use(rest.substr(digits + 1), block);
    }
    return use;
  }
  if (name == "token_embd.weight") {
    use.role = TensorRole::kEmbedding;
    return use;
  }
  if (name.starts_with("output.")) {
    use.role = TensorRole::kHead;
    return use;
  }
  if (name.starts_with("rope_freqs.") || name.starts_with("rope_factors_")) {
    use.role = TensorRole::kConstant;
    return use;
  }
  for (const std::string_view lookup : kLookups) {
    if (name.starts_with(lookup)) use.role = TensorRole::kLookup;
  }
  for (const std::string_view foreign : kForeign) {
    if (name.starts_with(foreign)) use.role = TensorRole::kForeign;
  }
  return use;
}

}  // namespace rooflined::model
