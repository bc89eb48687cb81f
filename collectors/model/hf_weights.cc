#include "collectors/model/hf_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace rooflined::model {
namespace {

double distinct(std::vector<std::uint64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return static_cast<double>(std::unique(numbers.begin(), numbers.end()) - numbers.begin());
}

}  // namespace

void NameHashes::put(std::vector<std::size_t>& slots, std::size_t hash) {
  const std::size_t mask = slots.size() - 1;  // a power of two
  std::size_t at = hash & mask;
  while (slots[at] != kEmpty) at = (at + 1) & mask;
  slots[at] = hash;
}

bool NameHashes::insert(std::size_t hash) {
  if (hash == kEmpty) hash = 1;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at] != kEmpty; at = (at + 1) & mask) {
    if (slots_[at] == hash) return false;
  }
  if (2 * ++count_ > slots_.size()) {
    std::vector<std::size_t> wider(2 * slots_.size(), kEmpty);
    for (const std::size_t each : slots_) {
      if (each != kEmpty) put(wider, each);
    }
    slots_ = std::move(wider);
  }
  put(slots_, hash);
  return true;
}

CheckpointWeights::CheckpointWeights(const Layout* layout, double packed_bits)
    : layout_(layout), packed_bits_(packed_bits) {
  if (layout_ == nullptr) return;
  for (const LayerParts& layer : layout_->layers) {
    experts_ = std::max(experts_, static_cast<std::uint64_t>(layer.experts.experts));
  }
}

const LayerExperts* CheckpointWeights::experts_of(std::uint64_t layer) const {
  if (layout_ == nullptr || layer >= layout_->layers.size()) return nullptr;
  const LayerExperts& experts = layout_->layers[layer].experts;
  return experts.experts > 0 ? &experts : nullptr;
}

void CheckpointWeights::add(const SafetensorsTensor& tensor) {
  const Sum one{static_cast<double>(tensor.bytes), checkpoint_parameters(tensor, packed_bits_)};
  all_bytes_ += one.bytes;
  if (!names_.insert(std::hash<std::string_view>{}(tensor.name))) {
    ++repeated_;
    return;
  }
  const auto into = [&one](Sum& sum) {
    sum.bytes += one.bytes;
    sum.parameters += one.parameters;
  };
  const CheckpointUse use = checkpoint_use(tensor, layout_ == nullptr ? 0 : layout_->layers.size(), experts_);
  const bool in_layer = use.role == CheckpointRole::kLayer || use.role == CheckpointRole::kSingleExpert ||
                        use.role == CheckpointRole::kExperts;
  if (in_layer) {
    ++layer_tensors_;
    if (tensor.shape.size() > 1) into(types_[tensor.type]);
  }
  if (tensor.type == "F32" && use.role != CheckpointRole::kLeftOut) wide_bytes_ += one.bytes;
  switch (use.role) {
    case CheckpointRole::kEmbedding:
      return into(embedding_);
    case CheckpointRole::kLookup:
      return into(lookup_);
    case CheckpointRole::kHead:
      return into(head_);
    case CheckpointRole::kSingleExpert: {
      Experts& experts = layer_experts_[use.layer];
      // The tensors of one expert mostly stand together.
      if (experts.numbers.empty() || experts.numbers.back() != use.expert) experts.numbers.push_back(use.expert);
      return into(experts.sum);
    }
    case CheckpointRole::kExperts:
      return into(layer_experts_[use.layer].sum);
    case CheckpointRole::kLeftOut:
      next_token_part_ = next_token_part_ || use.next_token_part;
      return into(left_out_);
    case CheckpointRole::kLayer:
    case CheckpointRole::kOther:
      return into(dense_);
  }
}

// A head that is tied may be stored all the same, and is the embedding once more.
void CheckpointWeights::finish_head(ModelFile& model, double& dense) const {
  const bool stored = head_.bytes > 0;
  if (!stored && !model.tied_embeddings && embedding_.bytes > 0) {
    model.warnings.emplace_back("no output head in the files: the embedding is taken for one");
  }
  if (!stored && embedding_.bytes == 0) {
    model.warnings.emplace_back("neither an embedding nor an output head in the files: counted without");
  }
  if (!stored) model.tied_embeddings = true;
  const Sum& head = stored ? head_ : embedding_;
  model.head_bytes = whole_bytes(head.bytes);
  model.head_parameters = head.parameters;
  dense += head.bytes;
  model.dense_parameters = dense_.parameters + head.parameters;
  model.parameters_total = dense_.parameters + lookup_.parameters + embedding_.parameters;
  if (stored && (!model.tied_embeddings || embedding_.bytes == 0)) model.parameters_total += head_.parameters;
}

void CheckpointWeights::finish_experts(ModelFile& model, double& streamed) const {
  model.expert_layers.clear();
  model.parameters_active = model.parameters_total;
  for (const auto& [layer, experts] : layer_experts_) {
    streamed += experts.sum.bytes;
    model.parameters_total += experts.sum.parameters;
    const LayerExperts* told = experts_of(layer);
    if (told == nullptr) {
      if (model.weights_known) {
        model.warnings.push_back(fmt::format(
            "bytes per pass not known: layer {} has experts, and config.json does not say how many", layer));
      }
      model.weights_known = false;
      continue;
    }
    double count = told->experts;
    if (!experts.numbers.empty()) count = distinct(experts.numbers);
    const double used = std::min(told->per_token, count);
    const ExpertLayers one{1, static_cast<std::uint64_t>(count), used, experts.sum.bytes / count,
                           experts.sum.parameters / count};
    model.parameters_active += used * one.parameters_per_expert;
    add_expert_layers(model.expert_layers, one);
  }
}

void CheckpointWeights::finish_composition(ModelFile& model) const {
  Sum all;
  for (const auto& [type, sum] : types_) {
    all.bytes += sum.bytes;
    all.parameters += sum.parameters;
  }
  model.composition.clear();
  if (all.bytes == 0) return;
  for (const auto& [type, sum] : types_)
    model.composition.push_back({type, whole_bytes(sum.bytes), sum.bytes / all.bytes});
  std::stable_sort(model.composition.begin(), model.composition.end(),
                   [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
  if (all.parameters > 0) model.bits_per_weight = all.bytes * 8 / all.parameters;
}

void CheckpointWeights::finish(ModelFile& model) const {
  // Beside rounding and what a family's checkpoints leave out; a wrong reading of names differs by far more.
  constexpr double kDifferenceMax = 0.01;
  const double told = model.parameters_total;
  model.weights_known = layer_tensors_ > 0;
  if (layer_tensors_ == 0) model.warnings.emplace_back("bytes per pass not known: no layers in the files");
  double dense = dense_.bytes;
  finish_head(model, dense);
  double streamed = dense;
  finish_experts(model, streamed);
  finish_composition(model);
  model.dense_bytes = whole_bytes(dense);
  model.streamed_bytes = whole_bytes(streamed);
  model.tensor_bytes = whole_bytes(all_bytes_);
  model.stored_wide = wide_bytes_ > dense / 2;
  if (repeated_ > 0) model.warnings.push_back(fmt::format("{} tensors are there twice, and counted once", repeated_));
  if (left_out_.bytes > 0) {
    model.warnings.push_back(fmt::format("{} bytes are not read by a plain decode pass ({})",
                                         whole_bytes(left_out_.bytes),
                                         next_token_part_ ? "next-token prediction" : "encoders, buffers"));
  }
  if (told > 0 && std::abs(model.parameters_total - told) > kDifferenceMax * told) {
    model.warnings.push_back(fmt::format("the files hold {:.0f} parameters, and config.json describes {:.0f}",
                                         model.parameters_total, told));
  }
}

}  // namespace rooflined::model
