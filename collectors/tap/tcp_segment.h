// One TCP segment as it was captured, with the link and network layers taken off.

#pragma once

#include "metrics/exchange.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rooflined::tap {

// RFC 9293 §3.1, the low six bits of the flags byte.
namespace tcp_flag {
constexpr std::uint8_t kFin = 0x01;
constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kReset = 0x04;
constexpr std::uint8_t kPush = 0x08;
constexpr std::uint8_t kAck = 0x10;
}  // namespace tcp_flag

// Which way the packet passed the interface; only the cooked link types say so.
enum class Passage : std::uint8_t { kUnknown, kIncoming, kOutgoing };

struct TcpSegment {
  Endpoint source;
  Endpoint destination;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgment = 0;
  std::uint8_t flags = 0;
  std::uint16_t window = 0;                  // as on the wire: before window scaling
  std::optional<std::uint8_t> window_scale;  // the option of a SYN (RFC 7323 §2.2)
  std::span<const std::byte> payload;        // what was captured of it; valid as long as the packet
  std::uint32_t payload_length = 0;          // on the wire; more than payload.size() where snaplen cut it
  std::uint32_t interface_index = 0;         // 0: the link type does not say
  Passage passage = Passage::kUnknown;

  bool has(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
};

}  // namespace rooflined::tap
