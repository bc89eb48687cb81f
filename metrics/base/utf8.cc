#include "metrics/base/utf8.h"

#include <cstdint>

namespace rooflined {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the well-formed sequence at `text`, or 0 (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto in = [&](std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return in(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : 0xBF;
    return in(1, low, high) && in(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return in(1, low, high) && in(2, 0x80, 0xBF) && in(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string to_label(std::string_view raw, std::size_t bytes_max) {
  std::string label;
  while (!raw.empty()) {
    const std::size_t length = sequence_length(raw);
    std::string_view piece = length == 0 ? kReplacement : raw.substr(0, length);
    if (length == 1 && (static_cast<std::uint8_t>(raw[0]) < 0x20 || raw[0] == 0x7F)) piece = " ";
    if (label.size() + piece.size() > bytes_max) break;
    label += piece;
    raw.remove_prefix(length == 0 ? 1 : length);
  }
  return label;
}

}  // namespace rooflined
