#include "collectors/model/safetensors_tensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace rooflined::model {
namespace {

// Parts of multimodal models that do not decode text.
constexpr auto kForeign = std::to_array<std::string_view>({"visual",
                                                           "multi_modal_projector",
                                                           "mm_projector",
                                                           "audio_tower",
                                                           "image_newline",
                                                           "embed_vision",
                                                           "embed_audio",
                                                           "connector",
                                                           "aligner",
                                                           "mlp1",
                                                           "audio_encoder",
                                                           "talker",
                                                           "code2wav",
                                                           "token2wav",
                                                           "patch_merger",
                                                           "pre_mm_projector_norm",
                                                           "img_processor",
                                                           "img_projection",
                                                           "embed_tokens_extend",
                                                           "resampler",
                                                           "vpm",
                                                           "apm",
                                                           "tts",
                                                           "speech_encoder"});
constexpr auto kEmbeddings = std::to_array<std::string_view>(
    {"embed_tokens", "wte", "word_embeddings", "embed_in", "tok_embeddings", "embeddings", "embedding", "emb"});
constexpr auto kHeads = std::to_array<std::string_view>({"lm_head", "embed_out", "output", "output_layer", "head"});
constexpr auto kLookups =
    std::to_array<std::string_view>({"embed_tokens_per_layer", "wpe", "embed_positions", "position_embeddings"});
constexpr auto kLayerLists = std::to_array<std::string_view>({"layers", "h", "blocks", "block", "layer"});
constexpr auto kScales = std::to_array<std::string_view>({"weight_scale",     "weight_scale_inv",
                                                          "weight_scale_2",   "weight_global_scale",
                                                          "input_scale",      "input_global_scale",
                                                          "k_scale",          "v_scale",
                                                          "q_scale",          "scales",
                                                          "qzeros",           "g_idx",
                                                          "weight_shape",     "weight_zero_point",
                                                          "weight_g_idx",     "absmax",
                                                          "quant_map",        "nested_absmax",
                                                          "nested_quant_map", "SCB",
                                                          "weight_format",    "scale"});

template <std::size_t N>
bool among(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::optional<std::uint64_t> number_in(std::string_view word) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return number;
}

std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

// Masks and frequencies that old checkpoints store.
bool is_buffer(const SafetensorsTensor& tensor, std::string_view last) {
  if (last == "inv_freq" || last == "masked_bias" || last == "rotary_emb" || last == "position_ids") return true;
  return last == "bias" && tensor.shape.size() == 4;
}

}  // namespace

CheckpointUse checkpoint_use(const SafetensorsTensor& tensor, std::uint64_t layers, std::uint64_t experts) {
  CheckpointUse use;
  const std::string_view name = tensor.name;
  const std::string_view last = last_part(name);
  bool in_layer = false;
  bool in_experts = false;
  bool in_single_expert = false;
  bool left_out = is_buffer(tensor, last);
  std::optional<CheckpointRole> outer;
  std::string_view previous;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t dot = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, dot - at);
    at = dot + 1;
    const std::optional<std::uint64_t> number = number_in(part);
    if (number && !in_layer && among(kLayerLists, previous)) {
      in_layer = true;
      use.layer = *number;
    } else if (number && previous == "experts") {
      in_single_expert = true;
      use.expert = *number;
    } else if (part == "experts") {
      in_experts = true;
    } else if (among(kForeign, part) || part.starts_with("vision_") || part.starts_with("audio_")) {
      left_out = true;
    } else if (part.starts_with("mtp") || part == "nextn" || part == "eh_proj") {
      use.next_token_part = true;
    } else if (!in_layer && !outer) {
      if (among(kEmbeddings, part)) outer = CheckpointRole::kEmbedding;
      if (among(kHeads, part)) outer = CheckpointRole::kHead;
      if (among(kLookups, part)) outer = CheckpointRole::kLookup;
    }
    previous = part;
  }
  if (in_layer && layers > 0 && use.layer >= layers) use.next_token_part = true;
  const bool merged = experts > 1 && tensor.shape.size() >= 3 && tensor.shape[0] == experts;
  if (left_out || use.next_token_part) {
    use.role = CheckpointRole::kLeftOut;
  } else if (!in_layer) {
    use.role = outer.value_or(CheckpointRole::kOther);
  } else if (in_single_expert) {
    use.role = CheckpointRole::kSingleExpert;
  } else if (in_experts || merged) {
    use.role = CheckpointRole::kExperts;
  } else {
    use.role = CheckpointRole::kLayer;
  }
  return use;
}

double checkpoint_parameters(const SafetensorsTensor& tensor, double bits) {
  const std::string_view last = last_part(tensor.name);
  if (among(kScales, last) || last.ends_with("_scales") || last.starts_with("quant_state") ||
      last.ends_with("_scale_inv") || last.ends_with("_scale") ||
      tensor.name.find(".quant_state.") != std::string::npos) {
    return 0;
  }
  const double stored = bits_of_safetensors_type(tensor.type);
  const bool packed = last == "weight_packed" || last == "qweight" || last.ends_with("_blocks") ||
                      last.ends_with("_packed") || (tensor.type == "U8" && bits < 8);
  if (!packed || bits <= 0 || bits > stored) return tensor.elements;
  return tensor.elements * stored / bits;
}

}  // namespace rooflined::model
