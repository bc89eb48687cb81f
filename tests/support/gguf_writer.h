// Writes GGUF files for tests: metadata, tensor table, and data that is left out, sparse, or filled by the caller.
//
// Version 3, little-endian, unless told otherwise. Not a parser's twin: it checks nothing, so that broken files can be
// written too.

#pragma once

#include "collectors/model/ggml_types.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rooflined::test {

class GgufWriter {
 public:
  enum class Data { kNone, kSparse };
  // Writes one tensor's bytes, exactly as many as it is told.
  using Fill = std::function<void(std::ostream&, std::string_view tensor, std::uint64_t bytes)>;

  explicit GgufWriter(std::uint32_t version = 3) : version_(version) {}

  GgufWriter& text(std::string_view key, std::string_view value) {
    return key_value(key, 8, [&] { put_text(metadata_, value); });
  }
  GgufWriter& u16(std::string_view key, std::uint16_t value) {
    return key_value(key, 2, [&] { put(metadata_, value); });
  }
  GgufWriter& u32(std::string_view key, std::uint32_t value) {
    return key_value(key, 4, [&] { put(metadata_, value); });
  }
  GgufWriter& i32(std::string_view key, std::int32_t value) {
    return key_value(key, 5, [&] { put(metadata_, value); });
  }
  GgufWriter& f32(std::string_view key, float value) {
    return key_value(key, 6, [&] { put(metadata_, value); });
  }
  GgufWriter& flag(std::string_view key, bool value) {
    return key_value(key, 7, [&] { metadata_.push_back(value ? '\1' : '\0'); });
  }
  GgufWriter& texts(std::string_view key, const std::vector<std::string>& values) {
    return array(key, 8, values.size(), [&] {
      for (const std::string& value : values) put_text(metadata_, value);
    });
  }
  GgufWriter& u32s(std::string_view key, const std::vector<std::uint32_t>& values) { return numbers(key, 4, values); }
  GgufWriter& i32s(std::string_view key, const std::vector<std::int32_t>& values) { return numbers(key, 5, values); }
  GgufWriter& f32s(std::string_view key, const std::vector<float>& values) { return numbers(key, 6, values); }
  GgufWriter& flags(std::string_view key, const std::vector<std::uint8_t>& values) { return numbers(key, 7, values); }

  // `dimensions` as in the file: the row length first.
  GgufWriter& tensor(std::string name, std::vector<std::uint64_t> dimensions, std::string_view type) {
    const model::GgmlType* known = model::ggml_type_by_name(type);
    if (known == nullptr) throw std::invalid_argument("no such tensor type: " + std::string(type));
    std::uint64_t elements = 1;
    for (const std::uint64_t dimension : dimensions) elements *= dimension;
    const std::uint64_t bytes = elements / known->block_elements * known->block_bytes;
    tensors_.push_back({std::move(name), std::move(dimensions), known->id, data_bytes_, bytes});
    data_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return *this;
  }

  std::string header() const {
    std::string out = "GGUF";
    put(out, version_);
    put(out, std::uint64_t{tensors_.size()});
    put(out, keys_);
    out += metadata_;
    for (const Tensor& tensor : tensors_) {
      put_text(out, tensor.name);
      put(out, static_cast<std::uint32_t>(tensor.dimensions.size()));
      for (const std::uint64_t dimension : tensor.dimensions) put(out, dimension);
      put(out, tensor.type);
      put(out, tensor.offset);
    }
    out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
    return out;
  }

  void write(const std::string& path, Data data = Data::kNone) const {
    write(path, data == Data::kSparse ? sparse() : Fill{});
  }
  // An empty `fill` leaves the tensor data out.
  void write(const std::string& path, const Fill& fill) const {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    const std::string bytes = header();
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    for (const Tensor& tensor : tensors_) {
      if (!fill) break;
      file.seekp(static_cast<std::streamoff>(bytes.size() + tensor.offset));
      fill(file, tensor.name, tensor.bytes);
    }
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
  }

 private:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> dimensions;
    std::uint32_t type;
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  static constexpr std::uint64_t kAlignment = 32;

  // Only the last byte is written: the file has its full size, and takes no room.
  static Fill sparse() {
    return [](std::ostream& out, std::string_view, std::uint64_t bytes) {
      if (bytes == 0) return;
      out.seekp(static_cast<std::streamoff>(bytes - 1), std::ios::cur);
      out.put('\0');
    };
  }

  template <typename T>
  static void put(std::string& out, T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out.append(bytes, sizeof(T));
  }
  static void put_text(std::string& out, std::string_view value) {
    put(out, std::uint64_t{value.size()});
    out += value;
  }

  template <typename Body>
  GgufWriter& key_value(std::string_view key, std::uint32_t type, Body body) {
    put_text(metadata_, key);
    put(metadata_, type);
    body();
    ++keys_;
    return *this;
  }
  template <typename Body>
  GgufWriter& array(std::string_view key, std::uint32_t type, std::size_t count, Body body) {
    return key_value(key, 9, [&] {
      put(metadata_, type);
      put(metadata_, std::uint64_t{count});
      body();
    });
  }
  template <typename T>
  GgufWriter& numbers(std::string_view key, std::uint32_t type, const std::vector<T>& values) {
    return array(key, type, values.size(), [&] {
      for (const T value : values) put(metadata_, value);
    });
  }

  std::uint32_t version_;
  std::string metadata_;
  std::uint64_t keys_ = 0;
  std::vector<Tensor> tensors_;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace rooflined::test
