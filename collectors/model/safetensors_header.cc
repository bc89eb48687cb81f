#include "collectors/model/safetensors_header.h"

#include "collectors/model/json_stream.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace rooflined::model {
namespace {

using nlohmann::json;

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Events of the JSON text. Depth 1: tensors by name. Depth 2: what one tensor has. Depth 3: shape and range.
class HeaderEvents : public nlohmann::json_sax<json> {
 public:
  HeaderEvents(JsonStream& stream, const std::function<void(const SafetensorsTensor&)>& on_tensor,
               const SafetensorsLimits& limits)
      : stream_(stream), on_tensor_(on_tensor), limits_(limits) {}

  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_float(number_float_t, const string_t&) override { return scalar(); }
  bool binary(binary_t&) override { return scalar(); }
  bool number_integer(number_integer_t value) override {
    return value >= 0 ? number_unsigned(static_cast<number_unsigned_t>(value)) : fail("a negative number");
  }
  bool number_unsigned(number_unsigned_t value) override {
    stream_.heard();
    if (depth_ != 3 || skipping_ || list_ == nullptr) return scalar();
    if (list_->size() >= limits_.dimensions_max) return fail(fmt::format("{} has too many dimensions", shown()));
    list_->push_back(value);
    return true;
  }
  bool string(string_t& value) override {
    stream_.heard();
    if (depth_ == 2 && !skipping_ && field_ == "dtype") {
      // One of a few words, as a rule: taken as it is.
      tensor_.type = bits_of_safetensors_type(value) != 0 ? value : to_label(value, 32);
    }
    return depth_ > 0 || fail("the header is not a JSON object");
  }

  bool start_object(std::size_t) override {
    stream_.heard();
    ++depth_;
    if (depth_ == 2) begin_tensor();
    return depth_ <= 3 || fail(fmt::format("{} is nested too deeply", shown()));
  }
  bool key(string_t& value) override {
    stream_.heard();
    if (depth_ == 1) {
      if (value.size() > limits_.name_bytes_max) return fail("a tensor's name is too long");
      tensor_.name = value;
    } else if (depth_ == 2) {
      field_ = value.substr(0, 16);
    }
    return true;
  }
  bool end_object() override {
    --depth_;
    return depth_ != 1 || skipping_ || end_tensor();
  }
  bool start_array(std::size_t) override {
    stream_.heard();
    ++depth_;
    if (depth_ < 3) return fail(depth_ == 1 ? "the header is not a JSON object" : shown() + " is not an object");
    list_ = nullptr;
    if (depth_ == 3 && field_ == "shape") list_ = &tensor_.shape;
    if (depth_ == 3 && field_ == "data_offsets") list_ = &offsets_;
    if (list_ != nullptr) list_->clear();
    return depth_ <= 3 || fail(fmt::format("{} is nested too deeply", shown()));
  }
  bool end_array() override {
    --depth_;
    list_ = nullptr;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return fail(fmt::format("the header is not JSON at byte {}", position));
  }

  const std::string& fault() const noexcept { return fault_; }
  std::vector<Range>& ranges() noexcept { return ranges_; }
  std::vector<std::string>& unknown_types() noexcept { return unknown_types_; }

 private:
  bool fail(std::string fault) {
    if (fault_.empty()) fault_ = std::move(fault);
    return false;
  }
  bool scalar() {
    stream_.heard();
    if (depth_ == 0) return fail("the header is not a JSON object");
    return depth_ != 1 || fail(shown() + " is not an object");
  }
  std::string shown() const { return to_label(tensor_.name, 96); }

  void begin_tensor() {
    skipping_ = tensor_.name == "__metadata__";
    tensor_.type.clear();
    tensor_.shape.clear();
    offsets_.clear();
    field_.clear();
  }

  bool end_tensor() {
    if (ranges_.size() >= limits_.tensors_max) return fail(fmt::format("more than {} tensors", limits_.tensors_max));
    if (offsets_.size() != 2 || offsets_[0] > offsets_[1]) return fail(shown() + " has no usable data_offsets");
    if (tensor_.type.empty()) return fail(shown() + " has no dtype");
    tensor_.bytes = offsets_[1] - offsets_[0];
    tensor_.elements = 1;
    for (const std::uint64_t dimension : tensor_.shape) tensor_.elements *= static_cast<double>(dimension);
    const unsigned bits = bits_of_safetensors_type(tensor_.type);
    if (bits == 0) {
      const bool seen = std::find(unknown_types_.begin(), unknown_types_.end(), tensor_.type) != unknown_types_.end();
      if (!seen && unknown_types_.size() < 8) unknown_types_.push_back(tensor_.type);
    } else if (tensor_.elements * bits != static_cast<double>(tensor_.bytes) * 8) {
      return fail(fmt::format("{}: {} elements of {} are not {} bytes", shown(), tensor_.elements, tensor_.type,
                              tensor_.bytes));
    }
    ranges_.push_back({offsets_[0], offsets_[1]});
    on_tensor_(tensor_);
    return true;
  }

  JsonStream& stream_;
  const std::function<void(const SafetensorsTensor&)>& on_tensor_;
  const SafetensorsLimits& limits_;
  int depth_ = 0;
  bool skipping_ = false;
  std::string field_;
  std::vector<std::uint64_t>* list_ = nullptr;
  std::vector<std::uint64_t> offsets_;
  SafetensorsTensor tensor_;
  std::vector<Range> ranges_;
  std::vector<std::string> unknown_types_;
  std::string fault_;
};

// The format leaves no byte without an owner and none with two.
std::optional<std::string> range_fault(std::vector<Range>& ranges) {
  const auto before = [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  };
  if (!std::is_sorted(ranges.begin(), ranges.end(), before)) std::sort(ranges.begin(), ranges.end(), before);
  std::uint64_t expected = 0;
  for (const Range& range : ranges) {
    if (range.begin < expected) return fmt::format("tensors overlap at byte {} of the data", range.begin);
    if (range.begin > expected) return fmt::format("a hole at byte {} of the data, between tensors", expected);
    expected = range.end;
  }
  return std::nullopt;
}

}  // namespace

unsigned bits_of_safetensors_type(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 22> kTypes = {{
      {"BF16", 16},   {"F16", 16},        {"F32", 32},        {"F64", 64},    {"F8_E4M3", 8}, {"F8_E5M2", 8},
      {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
      {"F4_E2M1", 4}, {"I8", 8},          {"U8", 8},          {"I16", 16},    {"U16", 16},    {"I32", 32},
      {"U32", 32},    {"I64", 64},        {"U64", 64},        {"BOOL", 8},
  }};
  for (const auto& [name, bits] : kTypes) {
    if (name == type) return bits;
  }
  return 0;
}

Result<SafetensorsSummary> read_safetensors_header(ByteSource& source, const std::string& name,
                                                   const std::function<void(const SafetensorsTensor&)>& on_tensor,
                                                   const SafetensorsLimits& limits) {
  SourceReader reader(source);
  const std::uint64_t length = reader.u64();
  if (!reader.ok()) return Error{ErrorCode::kTruncated, name, "truncated: no safetensors header"};
  if (length > limits.header_bytes_max) {
    return Error{ErrorCode::kLimit, name, fmt::format("a header of {} bytes: not a safetensors file", length)};
  }
  if (length > reader.left()) {
    return Error{ErrorCode::kTruncated, name,
                 fmt::format("truncated: a header of {} bytes, and {} are there", length, reader.left())};
  }
  JsonStream stream(source, 8, length);
  HeaderEvents events(stream, on_tensor, limits);
  const bool parsed = json::sax_parse(stream.begin(), stream.end(), &events);
  if (!parsed) return Error{ErrorCode::kInvalid, name, events.fault().empty() ? "not JSON" : events.fault()};
  if (events.ranges().empty()) return Error{ErrorCode::kInvalid, name, "no tensors in it"};
  if (auto fault = range_fault(events.ranges())) return Error{ErrorCode::kInvalid, name, std::move(*fault)};
  SafetensorsSummary summary;
  summary.tensors = events.ranges().size();
  summary.tensor_bytes = events.ranges().back().end;
  summary.unknown_types = std::move(events.unknown_types());
  const std::uint64_t there = source.size() - 8 - length;
  if (there < summary.tensor_bytes) summary.missing_bytes = summary.tensor_bytes - there;
  return summary;
}

}  // namespace rooflined::model
