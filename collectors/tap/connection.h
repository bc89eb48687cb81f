// What the TCP stage tells the HTTP stage about one connection.
//
// The TCP stage makes one handler for each connection to a watched port and calls it on the capture thread. Bytes come
// in stream order for each direction; the two directions interleave in the order of capture. A gap stands for bytes
// that will never come: the handler must find its own way back into the stream.

#pragma once

#include "metrics/base/time.h"
#include "metrics/exchange.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rooflined::tap {

enum class Direction : std::uint8_t { kToServer, kToClient };

enum class GapCause : std::uint8_t {
  kHoleTooOld,    // waited for hole_age_max and nothing came
  kBufferFull,    // a bound on waiting bytes or segments was reached
  kStreamClosed,  // the connection ended with the hole open
  kTruncated,     // the capture cut the segment (snaplen)
};

struct Gap {
  std::uint64_t bytes_missing = 0;
  GapCause cause = GapCause::kHoleTooOld;
  LineTime declared_at;
};

enum class CloseCause : std::uint8_t {
  kFinished,  // both FINs
  kResetByClient,
  kResetByServer,
  kReplaced,  // the same four-tuple began anew (port reuse)
  kIdle,      // nothing for the idle limit
  kEvicted,   // a bound on connections or memory was reached
  kEndOfCapture,
};

struct ConnectionInfo {
  Endpoint server;
  // False where the handshake was seen: both streams are complete from their first byte.
  bool joined_late = false;
  LineTime opened_at;
};

class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;

  // One segment's worth of new bytes, or what is left of it after overlap. `captured_at` is when these bytes crossed
  // the wire, not when the hole in front of them was filled. `bytes` is valid during the call only.
  virtual void on_bytes(Direction direction, std::span<const std::byte> bytes, LineTime captured_at) = 0;
  virtual void on_gap(Direction direction, const Gap& gap) = 0;
  // The client's receive window closed (zero), or opened again.
  virtual void on_client_window(bool closed, LineTime at) = 0;
  // The FIN of this direction was reached in order; the other may go on.
  virtual void on_half_close(Direction direction, LineTime at) = 0;
  // The last call, and not made after lost_interest().
  virtual void on_close(CloseCause cause, LineTime at) = 0;
  // True when this handler has seen enough to know that the connection is of no interest (TLS, HTTP/2, other traffic):
  // the TCP stage then drops it and its bytes.
  virtual bool lost_interest() const = 0;
};

class ConnectionFactory {
 public:
  virtual ~ConnectionFactory() = default;
  virtual std::unique_ptr<ConnectionHandler> open(const ConnectionInfo& info) = 0;
  // A SYN was answered by a RST: nothing listens there.
  virtual void refused(const Endpoint& /*server*/, LineTime /*at*/) {}
};

}  // namespace rooflined::tap
