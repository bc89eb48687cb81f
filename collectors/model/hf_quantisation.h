// What `quantization_config` in a config.json says about how many bits a weight takes, and which modules it leaves out.
//
// An estimate: the bytes of a checkpoint are in its safetensors headers, and those go before it. Thread rule: plain
// data.

#pragma once

#include "collectors/model/hf_config.h"

#include <string>
#include <string_view>
#include <vector>

namespace rooflined::model {

struct HfQuantisation {
  std::string method;                 // "fp8", "awq", …; empty: none
  bool known = true;                  // false: the method does not say how many bits
  double weight_bits = 16;            // of one weight of a converted module, its scales and zero points included
  double expert_bits = 0;             // of routed experts where they differ; 0: like the others
  double packed_bits = 4;             // of one weight where a checkpoint packs several into an element
  std::vector<std::string> left_out;  // module names, globs ("*"), as in the config; patterns already expanded
  bool left_out_cut = false;          // there are more of them than are read
  bool experts_only = false;

  // Whether the module of that full name ("model.layers.3.self_attn.q_proj") is converted.
  bool converts(std::string_view module) const;
};

HfQuantisation read_quantisation(const HfConfig& config);

// Bytes of one number of the checkpoint's own type ("bfloat16" → 2); 0 where the word is not known.
double bytes_of_torch_type(std::string_view word);

}  // namespace rooflined::model
