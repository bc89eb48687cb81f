// The line, built top to bottom: packet → TCP bytes | gap → HTTP message → stream event → token event → ledger →
// windows.
//
// Live or from a file, it is the same line: a Line is fed packets and told how time goes on. Capture thread only.

#pragma once

#include "collectors/tap/exchange_factory.h"
#include "collectors/tap/local_host.h"
#include "collectors/tap/packet.h"
#include "collectors/tap/tap.h"
#include "daemon/targets.h"
#include "metrics/snapshot.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rooflined::daemon {

struct LineOptions {
  std::vector<std::uint16_t> ports;
  // Only servers of this host count. False for capture files, which may come from anywhere.
  bool local_only = true;
  std::string interface = "any";
  Targets::Options targets;
  std::function<void(const Targets::Found&)> on_found;
  std::function<RecordObserver*(const Endpoint&)> observer_for;
};

class Line final : public tap::PacketSink {
 public:
  explicit Line(const LineOptions& options);
  ~Line() override;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void on_packet(const tap::Packet& packet) override;
  // Live, around each read.
  void observe(MonotonicTime now) { tap_->observe(now); }
  void advance_live(MonotonicTime now);
  // The end of a capture file.
  void finish();

  Targets& targets() { return *targets_; }
  const Targets& targets() const { return *targets_; }
  const tap::Tap& tap() const { return *tap_; }

  // Counters of the capture as a scrape shows them; `stats` is the source's.
  CaptureSnapshot capture_snapshot(const std::string& interface, const tap::CaptureStats& stats) const;

 private:
  // Says once for each port what can be done.
  void warn_unreadable(std::uint16_t port, tap::ParseError why);

  std::set<std::pair<std::uint16_t, tap::ParseError>> warned_;
  // In the order of the line; the later ones hold on to the earlier ones.
  std::unique_ptr<Targets> targets_;
  std::unique_ptr<tap::ExchangeFactory> exchanges_;
  std::unique_ptr<tap::HostNetwork> network_;
  std::unique_ptr<tap::LocalHost> local_;
  std::unique_ptr<tap::Tap> tap_;
};

}  // namespace rooflined::daemon
