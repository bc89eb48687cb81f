// Rings when a request arrives: a capture socket of its own, open only while a bandwidth probe runs.
//
//   in:   what clients send to the watched ports of this host
//   out:  one call, on the doorbell's own thread, at the first packet of a request, or when the socket fails
//
// The tap's capture hands packets over up to 50 ms late; this one is immediate. Packets are cut at 128 bytes and the
// kernel's filter lets only payload towards the ports through, so that it costs nothing while nobody asks. A request
// that begins with GET or HEAD does not ring: no server generates at one, and health checks, scrapes and our own
// questions would let no probe ever end. A connection that is opened does not ring for the same reason.
//
// Bounds: a ring of 64 KiB in the kernel. Threads: open(), listen() and the destructor on one thread.

#pragma once

#include "collectors/tap/local_host.h"
#include "collectors/tap/packet.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <sched.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rooflined::tap {

// Whether this packet is the first of a request to a server of this host, or part of one. A packet that cannot be
// judged (its headers reach beyond the 128 bytes) is one.
bool rings(const Packet& packet, std::span<const std::uint16_t> ports, LocalHost& local);

class Doorbell {
 public:
  struct Options {
    std::string interface = "any";
    std::vector<std::uint16_t> ports = {};  // at least one
  };
  // The stamp of the packet that rang, or why nothing can be heard any more.
  using Answer = std::function<void(const Result<CaptureTime>& rung)>;

  // From here on packets are kept for listen(). The errors are those of open_live().
  static Result<std::unique_ptr<Doorbell>> open(const Options& options);
  // Closes the socket; `answer` is not called any more afterwards.
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  // Starts the thread, at the usual priority and with the shortest slices. Beside others on one CPU it may still come
  // late, as a real-time thread would where that CPU is busy inside the kernel: the probe's workers hold still by
  // themselves meanwhile (collectors/ceiling/stop_page.h). `answer` is called at most once. Once only.
  void listen(Answer answer);

  // Lets the thread run on other CPUs than these only, where it may use any other. After listen(), by who called that.
  void keep_off(const cpu_set_t& cpus);

  // Readable while a packet waits that was not looked at yet. For poll(2) only; another process may have it, too.
  int descriptor() const noexcept;

 private:
  struct Parts;
  explicit Doorbell(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace rooflined::tap
