// Synthetic streams of a simulated server as packets: what a capture of them would hold, with exact stamps.
//
// All streams run side by side over one server port: a step gives each of them one token, 10 µs after the one before.
// Thread rule: one thread.

#pragma once

#include "collectors/tap/packet.h"
#include "metrics/base/time.h"
#include "tests/simulator/dialect.h"
#include "tests/support/packets.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rooflined::bench {

constexpr std::uint16_t kServerPort = 8080;

struct TrafficOptions {
  std::size_t streams = 1;
  std::string dialect = "openai";
  bool acknowledgments = true;  // the client's empty segment after each of the server's
};

class Traffic {
 public:
  explicit Traffic(const TrafficOptions& options);

  // Handshake, request and response head of every stream.
  void open(CaptureTime at);
  void step(CaptureTime at);
  // The end of every response, and of its connection.
  void close(CaptureTime at);

  // The packets since the last call, in the order of their stamps.
  std::vector<test::TimedPacket> take();

 private:
  struct Stream {
    test::TcpConversation talk;
    simulator::Response response;
  };

  void write(Stream& stream, CaptureTime at, const std::string& frame);

  TrafficOptions options_;
  std::unique_ptr<simulator::Dialect> dialect_;
  std::vector<Stream> streams_;
};

// A capture file's content in memory: one block, read front to back.
class MemoryCapture {
 public:
  void add(const std::vector<test::TimedPacket>& packets);
  void replay(tap::PacketSink& sink) const;
  std::size_t packets() const noexcept { return entries_.size(); }
  std::size_t bytes() const noexcept { return bytes_.size(); }

 private:
  struct Entry {
    CaptureTime at;
    std::size_t offset;
    std::uint32_t size;
  };
  std::vector<Entry> entries_;
  std::vector<std::byte> bytes_;
};

}  // namespace rooflined::bench
