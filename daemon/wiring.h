// The line, built top to bottom: packet → TCP bytes | gap → HTTP message → stream event → token event → ledger →
// windows.
//
// Live or from a file, it is the same line: a Line is fed packets and told how time goes on. Capture thread only.

#pragma once

#include "collectors/tap/exchange_factory.h"
#include "collectors/tap/local_host.h"
#include "collectors/tap/other_traffic.h"
#include "collectors/tap/packet.h"
#include "collectors/tap/tap.h"
#include "collectors/tap/watch.h"
#include "daemon/deploys.h"
#include "daemon/neighbours.h"
#include "daemon/targets.h"
#include "daemon/twins.h"
#include "metrics/snapshot.h"

#include <cstdint>
#include <functional>
#include <map>
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
  Deploys::Options deploys = {};
};

class Line final : public tap::PacketSink, private tap::OtherTrafficSink {
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

  // What a live capture should let through now; `watch_changes` counts up when that changed.
  const tap::Watch& watch() const { return watch_; }
  std::uint64_t watch_changes() const { return watch_changes_; }
  // Watches these ports instead of the earlier ones of that server, beside those of the settings.
  void set_child_ports(const Endpoint& parent, const std::vector<std::uint16_t>& ports);
  // Watches one flow in so many: a power of two.
  void set_share(unsigned one_in);

  Targets& targets() { return *targets_; }
  const Targets& targets() const { return *targets_; }
  Deploys& deploys() { return *deploys_; }
  const Deploys& deploys() const { return *deploys_; }
  const tap::Tap& tap() const { return *tap_; }

  // Counters of the capture as a scrape shows them; `stats` is the source's.
  CaptureSnapshot capture_snapshot(const std::string& interface, const tap::CaptureStats& stats) const;

 private:
  // Says once for each port what can be done.
  void warn_unreadable(std::uint16_t port, tap::ParseError why);

  std::set<std::pair<std::uint16_t, tap::ParseError>> warned_;
  void advance_books(LineTime now);
  void on_other_traffic(const Endpoint& server, LineTime at) override;
  void change_left_out();

  std::vector<std::uint16_t> ports_;  // of the settings
  std::map<Endpoint, std::vector<std::uint16_t>> child_ports_;
  Neighbours neighbours_;
  tap::Watch watch_;
  std::uint64_t watch_changes_ = 0;
  bool left_out_changed_ = false;  // and the tap does not know yet
  LineTime books_due_ = LineTime::min();

  // In the order of the line; the later ones hold on to the earlier ones.
  std::unique_ptr<Targets> targets_;
  std::unique_ptr<Deploys> deploys_;
  std::unique_ptr<Twins> twins_;
  std::unique_ptr<tap::ExchangeFactory> exchanges_;
  std::unique_ptr<tap::HostNetwork> network_;
  std::unique_ptr<tap::LocalHost> local_;
  std::unique_ptr<tap::Tap> tap_;
};

}  // namespace rooflined::daemon
