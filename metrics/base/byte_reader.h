// Reads fixed-width integers out of a span without ever leaving it.
//
// After the first read past the end every later read gives 0 and ok() stays false, so that a parser may read a whole
// header and check once.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rooflined {

enum class ByteOrder { kLittle, kBig };

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes, ByteOrder order = ByteOrder::kBig)
      : bytes_(bytes), order_(order) {}

  bool ok() const noexcept { return ok_; }
  std::size_t position() const noexcept { return position_; }
  std::size_t left() const noexcept { return bytes_.size() - position_; }

  std::uint8_t u8() { return static_cast<std::uint8_t>(integer(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(integer(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
  std::uint64_t u64() { return integer(8); }

  // The next `count` bytes, or an empty span and !ok().
  std::span<const std::byte> take(std::uint64_t count) {
    if (!ok_ || count > left()) {
      ok_ = false;
      return {};
    }
    const auto piece = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += static_cast<std::size_t>(count);
    return piece;
  }
  void skip(std::uint64_t count) { static_cast<void>(take(count)); }

 private:
  std::uint64_t integer(std::size_t width) {
    const auto piece = take(width);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const std::size_t at = order_ == ByteOrder::kBig ? i : piece.size() - 1 - i;
      value = value << 8 | std::to_integer<std::uint64_t>(piece[at]);
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  ByteOrder order_;
  std::size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace rooflined
