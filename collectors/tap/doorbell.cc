#include "collectors/tap/doorbell.h"

#include "collectors/tap/capture_filter.h"
#include "collectors/tap/link_layer.h"
#include "collectors/tap/pcap_handle.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

namespace rooflined::tap {

namespace {

// Cooked header 20, tag 4, IPv6 40, TCP at most 60: 4 bytes of payload are left to tell GET from POST.
constexpr int kSnapLength = 128;
constexpr int kRingBytes = 64 * 1024;
constexpr int kPacketsPerRead = 256;

bool begins_with(std::span<const std::byte> payload, std::string_view text) {
  return payload.size() >= text.size() && std::memcmp(payload.data(), text.data(), text.size()) == 0;
}

// sched_setattr(2), version 0. The C library of Debian 12 has neither the calls nor the type; that of Debian 13 has
// both.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};

// Of the calling thread. What runs on a CPU keeps it for its slice, up to 3 ms and on to the next tick, even before
// whoever wakes up meanwhile; only one with a shorter slice does not have to wait (EEVDF, Linux 6.12). 0.1 ms is the
// shortest. Older kernels refuse or ignore it, and let a woken thread have the CPU anyhow.
void take_short_slices() {
  constexpr std::uint64_t kSliceNs = 100'000;
  SchedulingAttributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.runtime_ns = kSliceNs;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// The first packet that rings; later ones of the same read do not matter.
class Ear final : public PacketSink {
 public:
  Ear(std::span<const std::uint16_t> ports, LocalHost& local) : ports_(ports), local_(local) {}

  void on_packet(const Packet& packet) override {
    if (!rung_at && rings(packet, ports_, local_)) rung_at = packet.captured_at;
  }

  std::optional<CaptureTime> rung_at;

 private:
  std::span<const std::uint16_t> ports_;
  LocalHost& local_;
};

}  // namespace

bool rings(const Packet& packet, std::span<const std::uint16_t> ports, LocalHost& local) {
  TcpSegment segment;
  const DecodeOutcome outcome = decode_tcp(packet, segment);
  if (outcome == DecodeOutcome::kTruncated) return true;
  if (outcome != DecodeOutcome::kTcp || segment.payload_length == 0) return false;
  if (std::find(ports.begin(), ports.end(), segment.destination.port) == ports.end()) return false;
  if (begins_with(segment.payload, "GET ") || begins_with(segment.payload, "HEAD")) return false;
  const auto now = LineTime(packet.captured_at.since_epoch());
  const Locality locality = local.judge(segment.destination.address, segment, true, now);
  return locality == Locality::kOwnAddress || locality == Locality::kReached;
}

struct Doorbell::Parts {
  Options options;
  PcapHandle handle;
  int descriptor = -1;
  int quit = -1;  // eventfd(2)
  std::unique_ptr<HostNetwork> network;
  std::unique_ptr<LocalHost> local;
  std::thread thread;
  cpu_set_t usable = {};  // CPUs
  cpu_set_t used = {};

  ~Parts() {
    if (quit >= 0) ::close(quit);
  }
  void run(const Answer& answer);
};

void Doorbell::Parts::run(const Answer& answer) {
  take_short_slices();
  Ear ear(options.ports, *local);
  for (;;) {
    const int got = dispatch_live(handle.get(), kPacketsPerRead, ear);
    if (ear.rung_at) return answer(*ear.rung_at);
    if (got < 0) return answer(Error{ErrorCode::kIo, options.interface, pcap_geterr(handle.get())});
    pollfd waiting[] = {{descriptor, POLLIN, 0}, {quit, POLLIN, 0}};
    if (::poll(waiting, 2, -1) < 0 && errno != EINTR) {
      return answer(Error{ErrorCode::kIo, options.interface, std::strerror(errno)});
    }
    if (waiting[1].revents != 0) return;
    if ((waiting[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
      return answer(Error{ErrorCode::kIo, options.interface, "the doorbell's capture ended"});
    }
  }
}

Result<std::unique_ptr<Doorbell>> Doorbell::open(const Options& options) {
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  char message[PCAP_ERRBUF_SIZE] = {};
  parts->handle.reset(pcap_create(options.interface.c_str(), message));
  if (parts->handle == nullptr) return Error{ErrorCode::kIo, options.interface, message};
  pcap_set_snaplen(parts->handle.get(), kSnapLength);
  pcap_set_buffer_size(parts->handle.get(), kRingBytes);
  pcap_set_immediate_mode(parts->handle.get(), 1);
  const auto descriptor = start_capture(parts->handle.get(), options.interface, [&options](int link_type) {
    return doorbell_filter(options.ports, link_type);
  });
  if (!descriptor) return descriptor.error();
  parts->descriptor = *descriptor;
  parts->quit = ::eventfd(0, EFD_CLOEXEC);
  if (parts->quit < 0) return Error{ErrorCode::kIo, "eventfd", std::strerror(errno)};
  parts->network = system_host_network();
  parts->local = std::make_unique<LocalHost>(*parts->network, interface_index(options.interface.c_str()));
  // Asks the system for this host's addresses now, and not when it rings.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  parts->local->judge(Address{}, TcpSegment{}, true, LineTime(std::chrono::duration_cast<Duration>(now)));
  return std::unique_ptr<Doorbell>(new Doorbell(std::move(parts)));
}

Doorbell::Doorbell(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Doorbell::~Doorbell() {
  if (!parts_->thread.joinable()) return;
  const std::uint64_t one = 1;
  while (::write(parts_->quit, &one, sizeof one) < 0 && errno == EINTR) {
  }
  parts_->thread.join();
}

int Doorbell::descriptor() const noexcept {
  return parts_->descriptor;
}

void Doorbell::listen(Answer answer) {
  parts_->thread = std::thread([parts = parts_.get(), answer = std::move(answer)] { parts->run(answer); });
  if (::pthread_getaffinity_np(parts_->thread.native_handle(), sizeof parts_->usable, &parts_->usable) != 0) {
    CPU_ZERO(&parts_->usable);  // more CPUs than it can hold: the thread stays wherever it is put
  }
  parts_->used = parts_->usable;
}

void Doorbell::keep_off(const cpu_set_t& cpus) {
  cpu_set_t shared;
  CPU_AND(&shared, &parts_->usable, &cpus);
  cpu_set_t wanted;
  CPU_XOR(&wanted, &parts_->usable, &shared);
  if (CPU_COUNT(&wanted) == 0) wanted = parts_->usable;
  if (CPU_COUNT(&wanted) == 0 || CPU_EQUAL(&wanted, &parts_->used)) return;
  ::pthread_setaffinity_np(parts_->thread.native_handle(), sizeof wanted, &wanted);
  parts_->used = wanted;
}

}  // namespace rooflined::tap
