// A captured packet, and where packets come from: a live interface or a capture file, by one interface.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rooflined::tap {

struct Packet {
  CaptureTime captured_at;
  std::span<const std::byte> bytes;  // from the link layer on; valid during the call only
  std::uint32_t wire_length = 0;     // more than bytes.size() where snaplen cut it
  int link_type = 0;                 // DLT_* of libpcap
};

class PacketSink {
 public:
  virtual ~PacketSink() = default;
  virtual void on_packet(const Packet& packet) = 0;
};

enum class ReadOutcome : std::uint8_t {
  kPackets,   // some were delivered
  kTimeout,   // none within the time
  kFinished,  // end of the file
};

struct CaptureStats {
  std::uint64_t packets = 0;  // delivered to the sink
  std::uint64_t dropped = 0;  // by the kernel or the interface, since the capture was opened
};

class PacketSource {
 public:
  virtual ~PacketSource() = default;
  // Delivers what is there and returns; waits at most about `timeout` for a first packet. An error is final (interface
  // gone, damaged file): what was delivered before it stays good.
  virtual Result<ReadOutcome> read(PacketSink& sink, std::chrono::milliseconds timeout) = 0;
  virtual CaptureStats stats() = 0;
};

}  // namespace rooflined::tap
