// One accepted connection as bytes, plain or through TLS. Never blocks, never throws; used by the server's thread only.

#pragma once

#include "metrics/base/result.h"
#include "metrics/export/owned_fd.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace rooflined::metrics_export {

class Channel {
 public:
  enum class State { kDone, kWantsRead, kWantsWrite, kClosed };
  struct Progress {
    State state = State::kDone;  // kDone: `bytes` of at least 1 were moved
    std::size_t bytes = 0;
  };

  virtual ~Channel() = default;
  virtual Progress read(std::span<char> into) = 0;
  virtual Progress write(std::string_view from) = 0;
};

// Makes the channel of an accepted, non-blocking socket; the socket must outlive it.
class ChannelFactory {
 public:
  virtual ~ChannelFactory() = default;
  virtual std::unique_ptr<Channel> make(int fd) = 0;
};

std::unique_ptr<ChannelFactory> plain_channels();
// TLS 1.2 and above with the certificate chain and the key in these PEM files. Files that change are read again with
// the next connection; while they cannot be used, the pair read before stays in use.
Result<std::unique_ptr<ChannelFactory>> tls_channels(const std::string& certificate, const std::string& key);

}  // namespace rooflined::metrics_export
