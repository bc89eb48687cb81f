#include "collectors/model/gguf_model.h"

#include "collectors/model/gguf_cache.h"
#include "collectors/model/gguf_tensors.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace rooflined::model {
namespace {

// The routed experts of one block, from one tensor or many.
struct BlockExperts {
  std::uint64_t experts = 0;
  std::vector<std::string_view> single = {};  // numbers of those that have tensors of their own, some more than once
  Bytes bytes = 0;
  double parameters = 0;
  bool uneven = false;  // its tensors do not agree on the number of experts
};

struct TypeSum {
  Bytes bytes = 0;
  double elements = 0;
};

bool is_float_type(const GgmlType& type) {
  constexpr std::uint32_t kF32 = 0;
  constexpr std::uint32_t kF16 = 1;
  constexpr std::uint32_t kF64 = 28;
  constexpr std::uint32_t kBf16 = 30;
  return type.id == kF32 || type.id == kF16 || type.id == kBf16 || type.id == kF64;
}

class Description {
 public:
  Description(std::span<const GgufShard> shards, std::string_view file_name)
      : shards_(shards), metadata_(shards.front().header.metadata), file_name_(file_name) {}

  ModelFile make() {
    identity();
    find_left_out_blocks();
    for (const GgufShard& shard : shards_) {
      for (const GgufTensor& tensor : shard.header.tensors) add(tensor);
    }
    finish_head();
    finish_experts();
    finish_composition();
    cache();
    for (const GgufShard& shard : shards_) cut(shard);
    return std::move(model_);
  }

 private:
  void warn(std::string text) { model_.warnings.push_back(std::move(text)); }
  void weights_unknown(std::string text) {
    model_.weights_known = false;
    warn(std::move(text));
  }

  void identity() {
    model_.format = "gguf";
    architecture_ = std::string(metadata_.text("general.architecture").value_or(""));
    model_.architecture = to_label(architecture_, 64);
    model_.name = to_label(metadata_.text("general.name").value_or(""));
    model_.files = shards_.size();
    if (architecture_.empty()) warn("general.architecture is missing");
    model_.label = label_of_file_name(file_name_);
    if (model_.label.empty())
      model_.label = file_type_label(metadata_.number("general.file_type").value_or(UINT64_MAX));
  }

  // By what is in the table, not by a count in the metadata: files come with and without these blocks.
  void find_left_out_blocks() {
    for (const GgufShard& shard : shards_) {
      for (const GgufTensor& tensor : shard.header.tensors) {
        if (tensor.name.find(".nextn.") == std::string::npos) continue;
        const TensorUse use = tensor_use(tensor.name);
        if (use.next_token_part) left_out_.insert(use.block);
      }
    }
    if (!left_out_.empty()) {
      warn(fmt::format("{} next-token-prediction layer(s) in the file: not read by a plain pass, not counted",
                       left_out_.size()));
    }
  }

  void add(const GgufTensor& tensor) {
    const double elements = static_cast<double>(tensor.elements);
    model_.tensor_bytes += tensor.bytes;
    const TensorUse use = tensor_use(tensor.name);
    if (use.in_block && left_out_.count(use.block) > 0) return;
    if (use.role != TensorRole::kConstant && use.role != TensorRole::kForeign) model_.parameters_total += elements;
    if (use.in_block) {
      ++repeating_tensors_;
      TypeSum& sum = (is_float_type(*tensor.type) ? float_types_ : quantised_types_)[tensor.type];
      if (!is_float_type(*tensor.type) || tensor.dimension_count > 1) {
        sum.bytes += tensor.bytes;
        sum.elements += elements;
      }
    }
    switch (use.role) {
      case TensorRole::kEmbedding:
        embedding_bytes_ = tensor.bytes;
        embedding_parameters_ = elements;
        has_embedding_ = true;
        break;
      case TensorRole::kLookup:
        break;
      case TensorRole::kForeign:
        foreign_bytes_ += tensor.bytes;
        break;
      case TensorRole::kHead:
        has_head_ = has_head_ || tensor.name == "output.weight";
        model_.head_bytes += tensor.bytes;
        model_.dense_bytes += tensor.bytes;
        model_.head_parameters += elements;
        model_.dense_parameters += elements;
        break;
      case TensorRole::kExpert:
        add_experts(use.chunk_expert ? chunk_experts_[use.block] : experts_[use.block],
                    tensor.dimensions[std::max<std::uint32_t>(tensor.dimension_count, 1) - 1], tensor);
        break;
      case TensorRole::kSingleExpert: {
        BlockExperts& layer = experts_[use.block];
        // The tensors of one expert mostly stand together.
        const std::string_view number = expert_number(tensor.name);
        if (layer.single.empty() || layer.single.back() != number) layer.single.push_back(number);
        layer.bytes += tensor.bytes;
        layer.parameters += elements;
        break;
      }
      case TensorRole::kRepeating:
      case TensorRole::kOther:
        model_.dense_parameters += elements;
        model_.dense_bytes += tensor.bytes;
        break;
      case TensorRole::kConstant:
        model_.dense_bytes += tensor.bytes;
        break;
    }
  }

  static void add_experts(BlockExperts& layer, std::uint64_t experts, const GgufTensor& tensor) {
    layer.uneven = layer.uneven || (layer.experts != 0 && layer.experts != experts) || experts == 0;
    layer.experts = experts;
    layer.bytes += tensor.bytes;
    layer.parameters += static_cast<double>(tensor.elements);
  }

  // "blk.3.ffn_gate.7.weight" → "7".
  static std::string_view expert_number(std::string_view name) {
    name.remove_suffix(name.size() - name.rfind('.'));
    return name.substr(name.rfind('.') + 1);
  }

  void finish_head() {
    if (!has_head_ && has_embedding_) {
      model_.tied_embeddings = true;
      model_.head_bytes += embedding_bytes_;
      model_.dense_bytes += embedding_bytes_;
      model_.head_parameters += embedding_parameters_;
      model_.dense_parameters += embedding_parameters_;
    }
    if (!has_head_ && !has_embedding_)
      weights_unknown("bytes per pass not known: no output.weight and no token_embd.weight");
    if (const std::string_view other = not_a_decoder_architecture(architecture_); !other.empty()) {
      weights_unknown(fmt::format("bytes per pass not known: {} is {}", model_.architecture, other));
    }
    if (repeating_tensors_ == 0) weights_unknown("bytes per pass not known: no repeating layers (blk.N) in the file");
    if (foreign_bytes_ > 0) {
      warn(fmt::format("{} bytes belong to an encoder or a vision tower and are not read in decode", foreign_bytes_));
    }
  }

  void finish_experts() {
    model_.streamed_bytes = model_.dense_bytes;
    model_.parameters_active = model_.parameters_total;
    for (auto& [block, layer] : experts_) {
      std::sort(layer.single.begin(), layer.single.end());
      const auto end = std::unique(layer.single.begin(), layer.single.end());
      layer.uneven = layer.uneven || (layer.experts > 0 && !layer.single.empty());
      layer.experts += static_cast<std::uint64_t>(end - layer.single.begin());
      add_layer(block, layer, false);
    }
    for (const auto& [block, layer] : chunk_experts_) add_layer(block, layer, true);
    if (!chunk_experts_.empty()) {
      warn("chunk experts are counted as routed like the others: an upper bound of what is read");
    }
    if (!model_.weights_known) model_.expert_layers.clear();
  }

  void add_layer(std::uint64_t block, const BlockExperts& layer, bool chunk) {
    model_.streamed_bytes += layer.bytes;
    if (layer.uneven) {
      if (model_.weights_known) {
        weights_unknown(
            fmt::format("bytes per pass not known: tensors of block {} differ in their number of experts", block));
      }
      return;
    }
    const std::string key = architecture_ + ".expert_used_count";
    std::uint64_t used = metadata_.layer_number(key, block).value_or(0);
    if (used == 0) {
      if (model_.weights_known) weights_unknown(fmt::format("bytes per pass not known: no usable {}", key));
      return;
    }
    if (used > layer.experts) {
      if (!chunk && !clamped_) {
        warn(fmt::format("{} is {} with {} experts: taken as {}", key, used, layer.experts, layer.experts));
        clamped_ = true;
      }
      used = layer.experts;
    }
    const double count = static_cast<double>(layer.experts);
    const ExpertLayers one{1, layer.experts, static_cast<double>(used), static_cast<double>(layer.bytes) / count,
                           layer.parameters / count};
    model_.parameters_active -= (count - static_cast<double>(used)) * one.parameters_per_expert;
    add_expert_layers(model_.expert_layers, one);
  }

  void finish_composition() {
    const auto& types = quantised_types_.empty() ? float_types_ : quantised_types_;
    TypeSum all;
    for (const auto& [type, sum] : types) {
      all.bytes += sum.bytes;
      all.elements += sum.elements;
    }
    if (all.bytes == 0) return;
    const GgmlType* labelled = type_of_label(model_.label);
    if (labelled != nullptr) model_.on_label_share = 0;
    for (const auto& [type, sum] : types) {
      if (sum.bytes == 0) continue;
      const double share = static_cast<double>(sum.bytes) / static_cast<double>(all.bytes);
      model_.composition.push_back({std::string(type->name), sum.bytes, share});
      if (type == labelled) model_.on_label_share = share;
    }
    std::stable_sort(model_.composition.begin(), model_.composition.end(),
                     [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
    model_.bits_per_weight = static_cast<double>(all.bytes) * 8 / all.elements;
  }

  void cache() {
    GgufCache cache = gguf_cache(metadata_, architecture_, left_out_);
    model_.kv_known = cache.known;
    model_.kv_layers = std::move(cache.layers);
    model_.state_bytes_per_sequence = cache.state_bytes;
    for (std::string& text : cache.warnings) warn(to_label(text, 512));
  }

  void cut(const GgufShard& shard) {
    model_.file_bytes += shard.file_bytes;
    const Bytes wanted = shard.header.data_bytes == 0 ? 0 : shard.header.data_offset + shard.header.data_bytes;
    if (shard.file_bytes >= wanted) return;
    model_.cut = true;
    warn(fmt::format("cut: {} bytes of tensor data are missing; all figures are from the tensor table",
                     wanted - shard.file_bytes));
  }

  std::span<const GgufShard> shards_;
  const GgufMetadata& metadata_;
  std::string_view file_name_;
  ModelFile model_;
  std::string architecture_;
  std::set<std::uint64_t> left_out_;
  bool has_head_ = false;
  bool has_embedding_ = false;
  bool clamped_ = false;
  Bytes embedding_bytes_ = 0;
  double embedding_parameters_ = 0;
  Bytes foreign_bytes_ = 0;
  std::uint64_t repeating_tensors_ = 0;
  std::map<std::uint64_t, BlockExperts> experts_;
  std::map<std::uint64_t, BlockExperts> chunk_experts_;
  std::map<const GgmlType*, TypeSum> quantised_types_;
  std::map<const GgmlType*, TypeSum> float_types_;
};

}  // namespace

ModelFile describe_gguf(std::span<const GgufShard> shards, std::string_view file_name) {
  ROOFLINED_CHECK(!shards.empty());
  return Description(shards, file_name).make();
}

}  // namespace rooflined::model
