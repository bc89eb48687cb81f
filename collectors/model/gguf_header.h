// Reads the header of one GGUF file: metadata and tensor table, never a tensor.
//
//   in:   a ByteSource, version 2 or 3, little- or big-endian
//   out:  GgufHeader, or an Error that names the place and the defect
//
// Every declared length is checked against the bytes left and against Limits before anything is done with it. Arrays
// are skipped by their size; a vocabulary (an array of strings) is walked length by length and not kept. Memory: the
// tensor table and the short metadata, bounded by Limits; time: the header's bytes. Thread rule: none of its own.

#pragma once

#include "collectors/model/byte_source.h"
#include "collectors/model/ggml_types.h"
#include "metrics/base/result.h"
#include "metrics/base/units.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rooflined::model {

struct GgufLimits {
  std::uint64_t keys_max = 4096;
  std::uint64_t tensors_max = 100'000;
  std::uint64_t key_bytes_max = 256;
  std::uint64_t tensor_name_bytes_max = 128;             // the format says 64
  std::uint64_t text_bytes_kept_max = 256;               // longer values (chat templates) are skipped
  std::uint64_t array_elements_kept_max = 4096;          // per-layer arrays; longer ones are skipped
  std::uint64_t array_elements_kept_total = 65'536;      // over all keys
  std::uint64_t array_elements_walked_max = 16'777'216;  // strings and nested arrays, over all keys
  unsigned array_depth_max = 4;
};

// The metadata that is worth keeping, by key.
class GgufMetadata {
 public:
  struct Value {
    enum class Kind { kSkipped, kUnsigned, kSigned, kFlag, kText, kArray };  // kSkipped: of no use to us, or too long

    Kind kind = Kind::kSkipped;
    std::uint64_t number = 0;  // kUnsigned, kFlag; the bits of kSigned
    std::string text;
    std::vector<std::int64_t> elements;

    static Value of(std::uint64_t number) { return {Kind::kUnsigned, number, {}, {}}; }
    static Value of(std::int64_t number) { return {Kind::kSigned, static_cast<std::uint64_t>(number), {}, {}}; }
    static Value of(bool flag) { return {Kind::kFlag, flag ? 1U : 0U, {}, {}}; }
    static Value of(std::string text) { return {Kind::kText, 0, std::move(text), {}}; }
    static Value of(std::vector<std::int64_t> elements) { return {Kind::kArray, 0, {}, std::move(elements)}; }
  };

  // False where the key is there already.
  bool add(std::string key, Value value) { return values_.emplace(std::move(key), std::move(value)).second; }
  const std::map<std::string, Value, std::less<>>& values() const noexcept { return values_; }
  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }

  // A whole number, 0 or more, of any integer type; nullopt where absent or anything else.
  std::optional<std::uint64_t> number(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  // The number of one layer: of an array its element, of a scalar the same for all. Bools are 0 and 1.
  std::optional<std::uint64_t> layer_number(std::string_view key, std::uint64_t layer) const;
  bool is_array(std::string_view key) const;

 private:
  const Value* find(std::string_view key, Value::Kind kind) const;

  std::map<std::string, Value, std::less<>> values_;
};

struct GgufTensor {
  std::string name;
  const GgmlType* type = nullptr;  // never null, never a removed one
  std::array<std::uint64_t, 4> dimensions{1, 1, 1, 1};
  std::uint32_t dimension_count = 0;
  std::uint64_t elements = 0;
  Bytes bytes = 0;
  std::uint64_t offset = 0;  // from the start of the tensor data
};

struct GgufHeader {
  std::uint32_t version = 0;
  ByteOrder order = ByteOrder::kLittle;
  std::uint64_t alignment = 32;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
  std::uint64_t data_offset = 0;  // where the tensor data begins in the file
  Bytes data_bytes = 0;           // what the tensor table needs from there on
};

// `name` (the path) opens each error message.
Result<GgufHeader> read_gguf_header(ByteSource& source, const std::string& name, const GgufLimits& limits = {});

}  // namespace rooflined::model
