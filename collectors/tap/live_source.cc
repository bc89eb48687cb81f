#include "collectors/tap/capture_filter.h"
#include "collectors/tap/packet_source.h"
#include "collectors/tap/pcap_handle.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace rooflined::tap {

namespace {

// Above the largest segment that offloading makes on loopback (64 KB, and up to 512 KB with BIG TCP, which is then
// cut). libpcap's own largest value: with a buffered ring a large snaplen costs nothing per packet.
constexpr int kSnapLength = 262144;

// Between two looks of the caller at its clock.
constexpr int kPacketsPerRead = 4096;

class LiveSource final : public LiveCapture {
 public:
  LiveSource(PcapHandle handle, int descriptor, std::string interface)
      : handle_(std::move(handle)), descriptor_(descriptor), interface_(std::move(interface)) {}

  Result<ReadOutcome> read(PacketSink& sink, std::chrono::milliseconds timeout) override {
    auto outcome = take(sink);
    if (!outcome || *outcome == ReadOutcome::kPackets) return outcome;
    pollfd waiting{descriptor_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(timeout.count()));
    if (ready < 0 && errno != EINTR) return Error{ErrorCode::kIo, interface_, std::strerror(errno)};
    if (ready <= 0) return ReadOutcome::kTimeout;
    if ((waiting.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
      // The interface went down or away. libpcap waits for it to come back; a socket bound to a lost one never wakes
      // up.
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size);
      return Error{ErrorCode::kIo, interface_,
                   fmt::format("capture ended: {}", std::strerror(error != 0 ? error : EIO))};
    }
    return take(sink);
  }

  CaptureStats stats() override {
    pcap_stat raw{};
    if (pcap_stats(handle_.get(), &raw) == 0) {
      // A 32-bit counter since the capture was opened, which may wrap. What the card itself lost (ps_ifdrop) no program
      // of this host received either: TCP repeats it.
      stats_.dropped += raw.ps_drop - dropped_seen_;
      dropped_seen_ = raw.ps_drop;
    }
    return stats_;
  }

  Status set_watch(const Watch& watch) override {
    return set_filter(handle_.get(), capture_filter(watch, pcap_datalink(handle_.get())), interface_);
  }

 private:
  Result<ReadOutcome> take(PacketSink& sink) {
    const int packets = dispatch_live(handle_.get(), kPacketsPerRead, sink);
    if (packets < 0) return Error{ErrorCode::kIo, interface_, pcap_geterr(handle_.get())};
    stats_.packets += static_cast<std::uint64_t>(packets);
    return packets == 0 ? ReadOutcome::kTimeout : ReadOutcome::kPackets;
  }

  PcapHandle handle_;
  int descriptor_;
  std::string interface_;
  CaptureStats stats_;
  u_int dropped_seen_ = 0;
};

}  // namespace

Result<std::unique_ptr<LiveCapture>> open_live(const LiveOptions& options) {
  const std::string& interface = options.interface;
  char message[PCAP_ERRBUF_SIZE] = {};
  PcapHandle handle(pcap_create(interface.c_str(), message));
  if (handle == nullptr) return Error{ErrorCode::kIo, interface, message};
  pcap_set_snaplen(handle.get(), kSnapLength);
  pcap_set_buffer_size(handle.get(), options.ring_bytes);
  pcap_set_timeout(handle.get(), static_cast<int>(options.delivery.count()));
  const auto descriptor = start_capture(handle.get(), interface, [&options](int link_type) {
    return capture_filter({.ports = options.ports}, link_type);
  });
  if (!descriptor) return descriptor.error();
  return std::unique_ptr<LiveCapture>(std::make_unique<LiveSource>(std::move(handle), *descriptor, interface));
}

}  // namespace rooflined::tap
