// Writes connections of clients with one server as a capture file with exact stamps (nanoseconds, Ethernet).
//
//   in:   bytes that one side sends, in the order of time
//   out:  packets of at most kPayloadMax bytes with the sequence numbers of a real connection; the client acknowledges
//         well within its window
//
// Thread rule: one thread.

#pragma once

#include "metrics/base/result.h"
#include "metrics/base/time.h"
#include "tests/support/packets.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rooflined::simulator {

class CaptureFile {
 public:
  static Result<std::unique_ptr<CaptureFile>> create(const std::string& path);
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  void write(const test::TimedPacket& packet);
  // False where not everything could be written.
  bool finish();
  std::uint64_t packets() const noexcept { return packets_; }

 private:
  struct Handles;
  CaptureFile(std::string path, std::unique_ptr<Handles> handles);

  std::string path_;
  std::unique_ptr<Handles> handles_;
  std::uint64_t packets_ = 0;
};

// One connection.
class CapturedConnection {
 public:
  // Large enough for any frame, as on loopback, and no larger than an IPv4 packet.
  static constexpr std::size_t kPayloadMax = 16 * 1024;
  static constexpr std::size_t kUnacknowledgedMax = 16 * 1024;

  // Requires: `file` outlives this.
  CapturedConnection(CaptureFile& file, const Endpoint& client, const Endpoint& server);

  void open(CaptureTime at);
  void from_client(CaptureTime at, std::string_view bytes);
  void from_server(CaptureTime at, std::string_view bytes);
  // Both FINs.
  void close(CaptureTime at);
  // The client has gone.
  void reset(CaptureTime at);
  // Instead of open(): nobody listens.
  void refuse(CaptureTime at);

 private:
  void flush();

  CaptureFile& file_;
  test::TcpConversation talk_;
  std::size_t unacknowledged_ = 0;
};

}  // namespace rooflined::simulator
