// The two makers of a PacketSource: a live interface and a capture file. Both by libpcap.
//
// A live capture is buffered, not immediate: the kernel hands over a block when it is full or 50 ms old, and each
// packet carries the kernel's stamp with nanoseconds. What does not fit into the ring meanwhile is counted in
// stats().dropped. Threads: a source is used by one thread at a time; stats() by the same one.

#pragma once

#include "collectors/tap/packet.h"
#include "collectors/tap/watch.h"
#include "metrics/base/result.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rooflined::tap {

struct LiveOptions {
  std::string interface = "any";
  std::vector<std::uint16_t> ports = {};  // at least one
  int ring_bytes = 2 * 1024 * 1024;
  std::chrono::milliseconds delivery{50};
};

class LiveCapture : public PacketSource {
 public:
  // What the kernel lets through from now on. A few packets may be lost on the way; what is in the ring still comes.
  virtual Status set_watch(const Watch& watch) = 0;
};

// The errors are one line for a person: which interface, what is missing (CAP_NET_RAW), what would be right.
Result<std::unique_ptr<LiveCapture>> open_live(const LiveOptions& options);

// pcap and pcapng, with microseconds or nanoseconds. All packets come, whatever their port.
Result<std::unique_ptr<PacketSource>> open_file(const std::string& path);

}  // namespace rooflined::tap
