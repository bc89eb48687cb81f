// An internet address as the line keeps it: 16 bytes, IPv4 as IPv4-mapped IPv6.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace rooflined {

using IpAddress = std::array<std::uint8_t, 16>;

// 127.0.0.0/8 and ::1.
inline bool is_loopback(const IpAddress& address) {
  constexpr IpAddress kV6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  constexpr std::array<std::uint8_t, 13> kV4Start = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127};
  return address == kV6 || std::equal(kV4Start.begin(), kV4Start.end(), address.begin());
}

}  // namespace rooflined
