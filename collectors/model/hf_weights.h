// Adds up the tensors of a checkpoint by what a decode pass reads of them.
//
//   in:   tensors in any order, and the shape that the config says (experts, layers, ties)
//   out:  the weights of a ModelFile: exact bytes as stored
//
// Memory: two to four words for each tensor's name, and sums for each layer. Thread rule: none of its own.

#pragma once

#include "collectors/model/hf_layout.h"
#include "collectors/model/model_file.h"
#include "collectors/model/safetensors_header.h"
#include "collectors/model/safetensors_tensors.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::model {

// Hashes of names, each once: a flat table at most half full, a third of what a node for each would take.
class NameHashes {
 public:
  // False where it is there already.
  bool insert(std::size_t hash);

 private:
  static constexpr std::size_t kEmpty = 0;
  static void put(std::vector<std::size_t>& slots, std::size_t hash);

  std::vector<std::size_t> slots_ = std::vector<std::size_t>(1024, kEmpty);
  std::size_t count_ = 0;
};

class CheckpointWeights {
 public:
  // `layout` may be nullptr where the config's architecture is not known; it outlives this. `packed_bits`: of one
  // weight where several share an element.
  CheckpointWeights(const Layout* layout, double packed_bits);

  void add(const SafetensorsTensor& tensor);
  // Replaces the model's weights by what was added; what is doubtful becomes a warning.
  void finish(ModelFile& model) const;

 private:
  struct Sum {
    double bytes = 0;
    double parameters = 0;
  };
  struct Experts {
    Sum sum;
    std::vector<std::uint64_t> numbers;  // of single ones, some more than once
  };

  const LayerExperts* experts_of(std::uint64_t layer) const;
  void finish_head(ModelFile& model, double& dense) const;
  void finish_experts(ModelFile& model, double& streamed) const;
  void finish_composition(ModelFile& model) const;

  const Layout* layout_;
  double packed_bits_;
  std::uint64_t experts_ = 0;
  NameHashes names_;
  std::uint64_t repeated_ = 0;
  double all_bytes_ = 0;
  Sum embedding_;
  Sum lookup_;
  Sum head_;
  Sum dense_;  // layers, norms: without the head
  Sum left_out_;
  std::uint64_t layer_tensors_ = 0;
  bool next_token_part_ = false;
  double wide_bytes_ = 0;  // stored in 32 bit
  std::map<std::uint64_t, Experts> layer_experts_;
  std::map<std::string, Sum, std::less<>> types_;
};

}  // namespace rooflined::model
