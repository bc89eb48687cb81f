// Says when a server cannot send because its client does not read: the client's receive window is full.
//
//   in:   the window in each of the client's acknowledgments, and how far the server has sent
//   out:  whether another segment as long as the last one would fit
//
// A window of 0 needs no scale; others count only where the handshake showed it (RFC 7323 §2.2). A server that sends
// on proves that it may. Threads: one.

#pragma once

#include <cstdint>
#include <optional>

namespace rooflined::tap {

class ClientWindow {
 public:
  // The exponent of the client's window fields; nullopt where the handshake was not seen.
  void set_scale(std::optional<std::uint8_t> scale) { scale_ = scale; }

  // The client has everything before `acknowledgment`; `window` as on the wire. Older words than the last are skipped.
  void acknowledge(std::uint32_t acknowledgment, std::uint16_t window);
  // The server sent `length` bytes, the last of them before `sequence_end`.
  void send(std::uint32_t sequence_end, std::uint32_t length);

  bool closed() const noexcept { return closed_; }

 private:
  void judge();

  std::optional<std::uint8_t> scale_;
  bool acknowledged_ = false;
  bool sent_ = false;
  bool closed_ = false;
  std::uint16_t window_ = 0;
  std::uint32_t acknowledgment_ = 0;
  std::uint32_t sent_end_ = 0;
  std::uint32_t length_last_ = 1;
};

}  // namespace rooflined::tap
