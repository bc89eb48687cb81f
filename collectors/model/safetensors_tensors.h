// What a tensor of a checkpoint is for, from its name, and how many parameters it holds: the one place that knows how
// Hugging Face models name theirs. Pure functions over strings.

#pragma once

#include "collectors/model/safetensors_header.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace rooflined::model {

enum class CheckpointRole {
  kEmbedding,  // one row a token, unless it is the output head as well
  kLookup,     // other tables of which a token reads a row
  kHead,
  kLayer,         // in a layer, read at every pass
  kSingleExpert,  // one routed expert of a layer
  kExperts,       // all routed experts of a layer in one tensor
  kOther,         // final norm and the like: read at every pass
  kLeftOut,       // of an encoder, of next-token prediction, or a buffer: not read by a plain pass
};

struct CheckpointUse {
  CheckpointRole role = CheckpointRole::kOther;
  std::uint64_t layer = 0;   // where in one
  std::uint64_t expert = 0;  // kSingleExpert
  bool next_token_part = false;
};

// `layers` and `experts`: as the config says; 0: not known.
CheckpointUse checkpoint_use(const SafetensorsTensor& tensor, std::uint64_t layers, std::uint64_t experts);

// Parameters in the tensor: none in scales and zero points, several in each element of packed ones. `bits`: of one
// packed weight.
double checkpoint_parameters(const SafetensorsTensor& tensor, double bits);

}  // namespace rooflined::model
