// Reads the header of one safetensors file: names, types, shapes and places of its tensors, never a tensor.
//
//   in:   a ByteSource: 8 bytes of length, JSON, data (huggingface/safetensors, "Format")
//   out:  each tensor in the order of the header, and the sum; or an Error that names the defect
//
// The header is parsed as it is read and not kept. Every range is checked: within its shape's bytes, no overlap, no
// hole. Memory: 16 bytes for each tensor. Thread rule: none of its own.

#pragma once

#include "collectors/model/byte_source.h"
#include "metrics/base/result.h"
#include "metrics/base/units.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::model {

struct SafetensorsLimits {
  std::uint64_t header_bytes_max = 100'000'000;  // the format's own
  std::uint64_t tensors_max = 400'000;
  std::size_t name_bytes_max = 1024;
  std::size_t dimensions_max = 16;
};

struct SafetensorsTensor {
  std::string name;
  std::string type;  // "BF16", "F8_E4M3", …: as written
  std::vector<std::uint64_t> shape;
  double elements = 0;
  Bytes bytes = 0;
};

struct SafetensorsSummary {
  std::uint64_t tensors = 0;
  Bytes tensor_bytes = 0;
  Bytes missing_bytes = 0;                 // of tensor data that the file should have
  std::vector<std::string> unknown_types;  // each once, at most 8
};

// Bits of one element; 0 for a type that nobody knows yet, whose bytes its range tells all the same.
unsigned bits_of_safetensors_type(std::string_view type);

// `name` (the path) opens each error message. `on_tensor` is called while the header is read, also where it turns out
// to be broken later on.
Result<SafetensorsSummary> read_safetensors_header(ByteSource& source, const std::string& name,
                                                   const std::function<void(const SafetensorsTensor&)>& on_tensor,
                                                   const SafetensorsLimits& limits = {});

}  // namespace rooflined::model
