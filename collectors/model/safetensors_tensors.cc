#include "collectors/model/safetensors_tensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace rooflined::model {
namespace {

constexpr std::uint64_t kLayersMax = 4096;  // sums are kept for each

// What a part of a name, from dot to dot, says about the tensor.
enum class Word : std::uint8_t {
  kNone,
  kForeign,  // parts of multimodal models that do not decode text
  kEmbedding,
  kHead,
  kLookup,
  kLayerList,
  kScale,
};

struct WordEntry {
  std::string_view text;
  Word word = Word::kNone;
};

constexpr auto kWords = std::to_array<WordEntry>({
    {"visual", Word::kForeign},
    {"multi_modal_projector", Word::kForeign},
    {"mm_projector", Word::kForeign},
    {"audio_tower", Word::kForeign},
    {"image_newline", Word::kForeign},
    {"embed_vision", Word::kForeign},
    {"embed_audio", Word::kForeign},
    {"connector", Word::kForeign},
    {"aligner", Word::kForeign},
    {"mlp1", Word::kForeign},
    {"audio_encoder", Word::kForeign},
    {"talker", Word::kForeign},
    {"code2wav", Word::kForeign},
    {"token2wav", Word::kForeign},
    {"patch_merger", Word::kForeign},
    {"pre_mm_projector_norm", Word::kForeign},
    {"img_processor", Word::kForeign},
    {"img_projection", Word::kForeign},
    {"embed_tokens_extend", Word::kForeign},
    {"resampler", Word::kForeign},
    {"vpm", Word::kForeign},
    {"apm", Word::kForeign},
    {"tts", Word::kForeign},
    {"speech_encoder", Word::kForeign},
    {"embed_tokens", Word::kEmbedding},
    {"wte", Word::kEmbedding},
    {"word_embeddings", Word::kEmbedding},
    {"embed_in", Word::kEmbedding},
    {"tok_embeddings", Word::kEmbedding},
    {"embeddings", Word::kEmbedding},
    {"embedding", Word::kEmbedding},
    {"emb", Word::kEmbedding},
    {"lm_head", Word::kHead},
    {"embed_out", Word::kHead},
    {"output", Word::kHead},
    {"output_layer", Word::kHead},
    {"head", Word::kHead},
    {"embed_tokens_per_layer", Word::kLookup},
    {"wpe", Word::kLookup},
    {"embed_positions", Word::kLookup},
    {"position_embeddings", Word::kLookup},
    {"layers", Word::kLayerList},
    {"h", Word::kLayerList},
    {"blocks", Word::kLayerList},
    {"block", Word::kLayerList},
    {"layer", Word::kLayerList},
    {"weight_scale", Word::kScale},
    {"weight_scale_inv", Word::kScale},
    {"weight_scale_2", Word::kScale},
    {"weight_global_scale", Word::kScale},
    {"input_scale", Word::kScale},
    {"input_global_scale", Word::kScale},
    {"k_scale", Word::kScale},
    {"v_scale", Word::kScale},
    {"q_scale", Word::kScale},
    {"scales", Word::kScale},
    {"qzeros", Word::kScale},
    {"g_idx", Word::kScale},
    {"weight_shape", Word::kScale},
    {"weight_zero_point", Word::kScale},
    {"weight_g_idx", Word::kScale},
    {"absmax", Word::kScale},
    {"quant_map", Word::kScale},
    {"nested_absmax", Word::kScale},
    {"nested_quant_map", Word::kScale},
    {"SCB", Word::kScale},
    {"weight_format", Word::kScale},
    {"scale", Word::kScale},
});

// A name has some eight parts and a checkpoint a hundred thousand names: the words lie in a table by length and ends,
// so that most parts are told to be none of them without a comparison.
constexpr std::size_t kSlots = 256;
constexpr std::size_t slot_of(std::string_view text) {
  const auto value = [](char c) { return static_cast<std::size_t>(static_cast<unsigned char>(c)); };
  return (text.size() * 37 + value(text.front()) * 5 + value(text.back()) * 11) % kSlots;
}
constexpr std::array<WordEntry, kSlots> kTable = [] {
  std::array<WordEntry, kSlots> table{};
  for (const WordEntry& entry : kWords) {
    std::size_t at = slot_of(entry.text);
    while (!table[at].text.empty()) at = (at + 1) % kSlots;
    table[at] = entry;
  }
  return table;
}();

Word word_of(std::string_view part) {
  if (part.empty()) return Word::kNone;
  for (std::size_t at = slot_of(part); !kTable[at].text.empty(); at = (at + 1) % kSlots) {
    if (kTable[at].text == part) return kTable[at].word;
  }
  return Word::kNone;
}

std::optional<std::uint64_t> number_in(std::string_view word) {
  if (word.empty() || word.front() < '0' || word.front() > '9') return std::nullopt;
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
  Word previous_word = Word::kNone;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t dot = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, dot - at);
    at = dot + 1;
    const std::optional<std::uint64_t> number = number_in(part);
    const Word word = number ? Word::kNone : word_of(part);
    if (number && *number < kLayersMax && !in_layer && previous_word == Word::kLayerList) {
      in_layer = true;
      use.layer = *number;
    } else if (number && previous == "experts") {
      in_single_expert = true;
      use.expert = *number;
    } else if (part == "experts") {
      in_experts = true;
    } else if (word == Word::kForeign || part.starts_with("vision_") || part.starts_with("audio_")) {
      left_out = true;
    } else if (part.starts_with("mtp") || part == "nextn" || part == "eh_proj") {
      use.next_token_part = true;
    } else if (!in_layer && !outer) {
      if (word == Word::kEmbedding) outer = CheckpointRole::kEmbedding;
      if (word == Word::kHead) outer = CheckpointRole::kHead;
      if (word == Word::kLookup) outer = CheckpointRole::kLookup;
    }
    previous = part;
    previous_word = word;
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
  const bool plain = last == "weight" || last == "bias";
  if (!plain && (word_of(last) == Word::kScale || last.ends_with("_scales") || last.starts_with("quant_state") ||
                 last.ends_with("_scale_inv") || last.ends_with("_scale") ||
                 tensor.name.find(".quant_state.") != std::string::npos)) {
    return 0;
  }
  const bool packed =
      (tensor.type == "U8" && bits < 8) || (!plain && (last == "weight_packed" || last == "qweight" ||
                                                       last.ends_with("_blocks") || last.ends_with("_packed")));
  if (!packed || bits <= 0) return tensor.elements;
  const double stored = bits_of_safetensors_type(tensor.type);
  return bits > stored ? tensor.elements : tensor.elements * stored / bits;
}

}  // namespace rooflined::model
