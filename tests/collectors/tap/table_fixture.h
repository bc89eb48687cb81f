// A ConnectionTable with recording handlers, and short words for the segments of a conversation.

#pragma once

#include "collectors/tap/connection_table.h"
#include "tests/collectors/tap/recording.h"
#include "tests/support/packets.h"

#include <optional>
#include <string_view>
#include <vector>

namespace rooflined::tap {

using test::as_bytes;
using test::line_ms;
using test::RecordingFactory;

inline const Endpoint kClient = test::ipv4(10, 0, 0, 1, 40000);
inline const Endpoint kServer = test::ipv4(10, 0, 0, 2, 8080);
constexpr std::uint8_t kSyn = tcp_flag::kSyn;
constexpr std::uint8_t kAck = tcp_flag::kAck;
constexpr std::uint8_t kFin = tcp_flag::kFin;
constexpr std::uint8_t kReset = tcp_flag::kReset;

struct Fixture {
  explicit Fixture(const TableLimits& limits = {}) : table(ports, limits, factory, nullptr) {}

  void segment(std::int64_t ms, const Endpoint& from, const Endpoint& to, std::uint32_t sequence,
               std::uint32_t acknowledgment, std::uint8_t flags, std::string_view payload = {}) {
    table.advance_to(line_ms(ms));
    TcpSegment segment;
    segment.source = from;
    segment.destination = to;
    segment.sequence = sequence;
    segment.acknowledgment = acknowledgment;
    segment.flags = flags;
    segment.window = window;
    segment.window_scale = window_scale;
    segment.payload = as_bytes(payload);
    segment.payload_length = static_cast<std::uint32_t>(payload.size());
    table.accept(segment, line_ms(ms));
  }
  // Sequence numbers from 0: the client's initial one is 1000, the server's 5000.
  void up(std::int64_t ms, std::uint32_t at, std::string_view payload, std::uint8_t flags = kAck,
          std::uint32_t ack = 0) {
    segment(ms, kClient, kServer, 1001 + at, 5001 + ack, flags, payload);
  }
  void down(std::int64_t ms, std::uint32_t at, std::string_view payload, std::uint8_t flags = kAck,
            std::uint32_t ack = 0) {
    segment(ms, kServer, kClient, 5001 + at, 1001 + ack, flags, payload);
  }
  void handshake(std::int64_t ms) {
    segment(ms, kClient, kServer, 1000, 0, kSyn);
    segment(ms, kServer, kClient, 5000, 1001, kSyn | kAck);
    up(ms, 0, "");
  }

  std::uint16_t window = 0xffff;
  std::optional<std::uint8_t> window_scale;
  std::vector<std::uint16_t> ports = {8080, 8000};
  RecordingFactory factory;
  ConnectionTable table;
};

}  // namespace rooflined::tap
