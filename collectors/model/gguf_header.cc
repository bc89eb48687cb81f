#include "collectors/model/gguf_header.h"

#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace rooflined::model {
namespace {

// ggml docs/gguf.md, gguf_metadata_value_type.
enum ValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
constexpr std::array<std::string_view, 13> kTypeNames = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                         "bool", "string", "array", "u64", "i64", "f64"};
// 0: no fixed width.
constexpr std::array<std::uint8_t, 13> kTypeWidths = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

constexpr std::uint64_t kStringBytesMin = 8;        // its length
constexpr std::uint64_t kNestedArrayBytesMin = 12;  // type and length
constexpr std::uint64_t kKeyBytesMin = 8 + 4 + 1;
constexpr std::uint64_t kTensorBytesMin = 8 + 4 + 4 + 8;
constexpr std::uint64_t kAlignmentMax = 65'536;

std::int64_t sign_extend(std::uint64_t value, std::size_t width) {
  const unsigned shift = static_cast<unsigned>(64 - 8 * width);
  return static_cast<std::int64_t>(value << shift) >> shift;
}

bool is_signed(std::uint32_t type) {
  return type == kI8 || type == kI16 || type == kI32 || type == kI64;
}
bool is_float(std::uint32_t type) {
  return type == kF32 || type == kF64;
}

class HeaderParser {
 public:
  HeaderParser(ByteSource& source, const std::string& name, const GgufLimits& limits)
      : reader_(source), name_(name), limits_(limits) {}

  Result<GgufHeader> parse() {
    if (Status status = fixed_part(); !status) return status.error();
    for (std::uint64_t i = 0; i < key_count_; ++i) {
      if (Status status = key_and_value(); !status) return status.error();
    }
    for (std::uint64_t i = 0; i < tensor_count_; ++i) {
      if (Status status = tensor(); !status) return status.error();
    }
    if (!reader_.ok()) return truncated("the header");
    if (Status status = tensor_names_differ(); !status) return status.error();
    header_.data_offset = (reader_.position() + header_.alignment - 1) / header_.alignment * header_.alignment;
    return std::move(header_);
  }

 private:
  Error error(ErrorCode code, std::string detail) const { return {code, name_, std::move(detail)}; }
  Error truncated(std::string_view in) const {
    return error(ErrorCode::kTruncated,
                 fmt::format("truncated: the file ends inside {} (at byte {})", in, reader_.position()));
  }

  Status fixed_part() {
    const std::string magic = reader_.text(4);
    if (!reader_.ok()) return error(ErrorCode::kTruncated, "truncated: not a GGUF file (fewer than 4 bytes)");
    if (magic != "GGUF") {
      return error(ErrorCode::kUnsupported,
                   fmt::format("not a GGUF file: magic is \"{}\", should be \"GGUF\"", to_label(magic, 16)));
    }
    std::uint32_t version = reader_.u32();
    // Versions are small: low half empty means that the file was written in the other byte order.
    if (version != 0 && (version & 0xFFFFU) == 0) {
      header_.order = ByteOrder::kBig;
      reader_.set_order(ByteOrder::kBig);
      version = (version >> 24) | (version >> 8 & 0xFF00U);
    }
    tensor_count_ = reader_.u64();
    key_count_ = reader_.u64();
    if (!reader_.ok()) return truncated("the fixed part of the header");
    header_.version = version;
    if (version != 2 && version != 3) {
      return error(ErrorCode::kUnsupported, fmt::format("GGUF version {}: only 2 and 3 are handled", version));
    }
    if (key_count_ > limits_.keys_max) return limit("metadata keys", key_count_, limits_.keys_max);
    if (tensor_count_ > limits_.tensors_max) return limit("tensors", tensor_count_, limits_.tensors_max);
    // Both are under their limits: the products are small.
    if (key_count_ * kKeyBytesMin + tensor_count_ * kTensorBytesMin > reader_.left()) {
      return error(ErrorCode::kTruncated, fmt::format("truncated: {} keys and {} tensors cannot be in {} bytes",
                                                      key_count_, tensor_count_, reader_.left()));
    }
    return ok_status();
  }

  Error limit(std::string_view what, std::uint64_t declared, std::uint64_t most) const {
    return error(ErrorCode::kLimit, fmt::format("declares {} {}, at most {} are read", declared, what, most));
  }

  // A string that must be short: a key, a tensor's name.
  Result<std::string> short_text(std::string_view what, std::uint64_t bytes_max) {
    const std::uint64_t length = reader_.u64();
    if (!reader_.ok() || length > reader_.left()) return truncated(what);
    if (length > bytes_max) {
      return error(ErrorCode::kLimit, fmt::format("{} of {} bytes, at most {} are read", what, length, bytes_max));
    }
    return reader_.text(length);
  }

  Status key_and_value() {
    Result<std::string> key = short_text("a metadata key", limits_.key_bytes_max);
    if (!key) return key.error();
    const std::uint32_t type = reader_.u32();
    if (!reader_.ok()) return truncated("the metadata");
    if (type >= kTypeNames.size()) {
      return error(ErrorCode::kInvalid, fmt::format("key {}: unknown value type {}", to_label(*key), type));
    }
    if (*key == "general.alignment" && type != kU32) {
      return error(ErrorCode::kInvalid,
                   fmt::format("alignment type: general.alignment is {}, should be u32", kTypeNames[type]));
    }
    Result<GgufMetadata::Value> value = this->value(type, *key);
    if (!value) return value.error();
    if (*key == "general.alignment") {
      const std::uint64_t alignment = value->number;
      if (!std::has_single_bit(alignment) || alignment > kAlignmentMax) {
        return error(ErrorCode::kInvalid, fmt::format("general.alignment is {}, should be a power of two up to {}",
                                                      alignment, kAlignmentMax));
      }
      header_.alignment = alignment;
    }
    std::string shown = to_label(*key);
    if (!header_.metadata.add(std::move(*key), std::move(*value))) {
      return error(ErrorCode::kInvalid, fmt::format("duplicate key {}", shown));
    }
    return ok_status();
  }

  Result<GgufMetadata::Value> value(std::uint32_t type, const std::string& key) {
    if (type == kArray) return array(key);
    if (type == kString) {
      const std::uint64_t length = reader_.u64();
      if (!reader_.ok() || length > reader_.left()) return truncated(fmt::format("key {}", to_label(key)));
      if (length <= limits_.text_bytes_kept_max) return GgufMetadata::Value::of(reader_.text(length));
      reader_.skip(length);
      return GgufMetadata::Value{};
    }
    const std::size_t width = kTypeWidths[type];
    const std::uint64_t bits = reader_.integer(width);
    if (!reader_.ok()) return truncated(fmt::format("key {}", to_label(key)));
    if (is_float(type)) return GgufMetadata::Value{};
    if (type == kBool) return GgufMetadata::Value::of(bits != 0);
    if (is_signed(type)) return GgufMetadata::Value::of(sign_extend(bits, width));
    return GgufMetadata::Value::of(bits);
  }

  Result<GgufMetadata::Value> array(const std::string& key) {
    const std::uint32_t type = reader_.u32();
    const std::uint64_t count = reader_.u64();
    if (!reader_.ok()) return truncated(fmt::format("key {}", to_label(key)));
    const std::size_t width = type < kTypeWidths.size() ? kTypeWidths[type] : 0;
    const bool keep = width > 0 && !is_float(type) && count <= limits_.array_elements_kept_max &&
                      elements_kept_ + count <= limits_.array_elements_kept_total && count <= reader_.left() / width;
    if (!keep) {
      if (Status status = skip_elements(type, count, key, 1); !status) return status.error();
      return GgufMetadata::Value{};
    }
    elements_kept_ += count;
    std::vector<std::int64_t> elements;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = reader_.integer(width);
      // A number over 2^63 is no count of anything: negative, and so refused by whoever reads it.
      elements.push_back(is_signed(type) ? sign_extend(bits, width) : static_cast<std::int64_t>(bits));
    }
    return GgufMetadata::Value::of(std::move(elements));
  }

  Status skip_elements(std::uint32_t type, std::uint64_t count, const std::string& key, unsigned depth) {
    if (type >= kTypeWidths.size()) {
      return error(ErrorCode::kInvalid, fmt::format("key {}: unknown array type {}", to_label(key), type));
    }
    const std::uint64_t least = type == kString  ? kStringBytesMin
                                : type == kArray ? kNestedArrayBytesMin
                                                 : kTypeWidths[type];
    if (count > reader_.left() / least) {
      return error(ErrorCode::kTruncated,
                   fmt::format("truncated: key {} declares an array of {} elements, {} bytes left", to_label(key),
                               count, reader_.left()));
    }
    if (type != kString && type != kArray) {
      reader_.skip(count * least);
      return ok_status();
    }
    elements_walked_ += count;
    if (elements_walked_ > limits_.array_elements_walked_max) {
      return limit("array elements", elements_walked_, limits_.array_elements_walked_max);
    }
    if (type == kArray && depth >= limits_.array_depth_max) {
      return error(ErrorCode::kLimit, fmt::format("key {}: nested array deeper than {}", to_label(key), depth));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      if (type == kString) {
        reader_.skip(reader_.u64());
      } else {
        const std::uint32_t inner_type = reader_.u32();
        const std::uint64_t inner_count = reader_.u64();
        if (!reader_.ok()) break;
        if (Status status = skip_elements(inner_type, inner_count, key, depth + 1); !status) return status;
      }
      if (!reader_.ok()) break;
    }
    if (!reader_.ok()) return truncated(fmt::format("key {}", to_label(key)));
    return ok_status();
  }

  Status tensor() {
    Result<std::string> name = short_text("a tensor's name", limits_.tensor_name_bytes_max);
    if (!name) return name.error();
    GgufTensor tensor;
    tensor.dimension_count = reader_.u32();
    if (!reader_.ok()) return truncated("the tensor table");
    const auto shown = [&] { return to_label(*name); };
    if (tensor.dimension_count > tensor.dimensions.size()) {
      return error(ErrorCode::kInvalid, fmt::format("tensor {}: n_dims is {}, at most {} are possible", shown(),
                                                    tensor.dimension_count, tensor.dimensions.size()));
    }
    tensor.elements = 1;
    bool overflow = false;
    for (std::uint32_t i = 0; i < tensor.dimension_count; ++i) {
      tensor.dimensions[i] = reader_.u64();
      overflow = __builtin_mul_overflow(tensor.elements, tensor.dimensions[i], &tensor.elements) || overflow;
    }
    const std::uint32_t type = reader_.u32();
    tensor.offset = reader_.u64();
    if (!reader_.ok()) return truncated("the tensor table");
    tensor.type = ggml_type(type);
    if (tensor.type == nullptr) {
      return error(ErrorCode::kUnsupported, fmt::format("tensor {}: unknown type {}", shown(), type));
    }
    if (tensor.type->removed()) {
      return error(ErrorCode::kUnsupported, fmt::format("tensor {}: type {} ({}) was removed from the format", shown(),
                                                        type, tensor.type->name));
    }
    if (tensor.dimensions[0] % tensor.type->block_elements != 0) {
      return error(ErrorCode::kInvalid,
                   fmt::format("tensor {}: rows of {} elements do not divide into blocks of {} ({})", shown(),
                               tensor.dimensions[0], tensor.type->block_elements, tensor.type->name));
    }
    overflow = overflow || __builtin_mul_overflow(tensor.elements / tensor.type->block_elements,
                                                  Bytes{tensor.type->block_bytes}, &tensor.bytes);
    Bytes end = 0;
    overflow = overflow || __builtin_add_overflow(tensor.offset, tensor.bytes, &end) ||
               end > static_cast<Bytes>(std::numeric_limits<std::int64_t>::max());
    if (overflow) return error(ErrorCode::kInvalid, fmt::format("tensor {}: its size overflows", shown()));
    if (tensor.offset % header_.alignment != 0) {
      return error(ErrorCode::kInvalid, fmt::format("tensor {}: offset {} is not a multiple of the alignment {}",
                                                    shown(), tensor.offset, header_.alignment));
    }
    header_.data_bytes = std::max(header_.data_bytes, end);
    tensor.name = std::move(*name);
    header_.tensors.push_back(std::move(tensor));
    return ok_status();
  }

  // Sorted by a hash, and by name where that is the same: names chosen to collide cost little extra.
  Status tensor_names_differ() const {
    std::vector<std::pair<std::size_t, std::string_view>> names;
    names.reserve(header_.tensors.size());
    for (const GgufTensor& tensor : header_.tensors) {
      names.emplace_back(std::hash<std::string_view>{}(tensor.name), tensor.name);
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return ok_status();
    return error(ErrorCode::kInvalid, fmt::format("duplicate tensor {}", to_label(twice->second)));
  }

  SourceReader reader_;
  const std::string& name_;
  const GgufLimits& limits_;
  GgufHeader header_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_count_ = 0;
  std::uint64_t elements_kept_ = 0;
  std::uint64_t elements_walked_ = 0;
};

std::optional<std::uint64_t> from_signed(std::int64_t value) {
  if (value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

}  // namespace

const GgufMetadata::Value* GgufMetadata::find(std::string_view key, Value::Kind kind) const {
  const auto found = values_.find(key);
  return found != values_.end() && found->second.kind == kind ? &found->second : nullptr;
}

std::optional<std::uint64_t> GgufMetadata::number(std::string_view key) const {
  if (const Value* value = find(key, Value::Kind::kUnsigned)) return value->number;
  if (const Value* value = find(key, Value::Kind::kSigned))
    return from_signed(static_cast<std::int64_t>(value->number));
  return std::nullopt;
}

std::optional<std::string_view> GgufMetadata::text(std::string_view key) const {
  const Value* value = find(key, Value::Kind::kText);
  if (value == nullptr) return std::nullopt;
  return std::string_view(value->text);
}

std::optional<std::uint64_t> GgufMetadata::layer_number(std::string_view key, std::uint64_t layer) const {
  if (const Value* value = find(key, Value::Kind::kFlag)) return value->number;
  const Value* value = find(key, Value::Kind::kArray);
  if (value == nullptr) return number(key);
  if (layer >= value->elements.size()) return std::nullopt;
  return from_signed(value->elements[static_cast<std::size_t>(layer)]);
}

bool GgufMetadata::is_array(std::string_view key) const {
  return find(key, Value::Kind::kArray) != nullptr;
}

Result<GgufHeader> read_gguf_header(ByteSource& source, const std::string& name, const GgufLimits& limits) {
  return HeaderParser(source, name, limits).parse();
}

}  // namespace rooflined::model
