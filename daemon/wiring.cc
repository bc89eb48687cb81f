#include "daemon/wiring.h"

#include "metrics/base/log.h"

#include <algorithm>

namespace rooflined::daemon {
namespace {

// What waits in the books waits for hundreds of milliseconds; looking at each packet cost a tenth of the line's time.
constexpr Duration kBooksEvery = std::chrono::milliseconds(5);

}  // namespace

Line::Line(const LineOptions& options) : ports_(options.ports), watch_{.ports = options.ports, .left_out = {}} {
  // ledger, windows, one set of books for each target
  targets_ = std::make_unique<Targets>(options.targets, options.on_found, options.observer_for);
  deploys_ = std::make_unique<Deploys>(*targets_, options.deploys);
  // exchanges seen on two hops count on one
  twins_ = std::make_unique<Twins>(*targets_);
  // HTTP message → stream event → token event; of a file all is read, whatever it is
  tap::OtherTrafficSink* const other_traffic = options.local_only ? this : nullptr;
  exchanges_ = std::make_unique<tap::ExchangeFactory>(*twins_, tap::HttpLimits(), other_traffic);
  exchanges_->tell_unreadable(
      [this](const Endpoint& server, tap::ParseError why) { warn_unreadable(server.port, why); });
  exchanges_->tell_refused([this](const Endpoint& server, LineTime) { targets_->set_refused(server); });
  // packet → TCP bytes | gap
  if (options.local_only) {
    network_ = tap::system_host_network();
    local_ = std::make_unique<tap::LocalHost>(*network_, tap::interface_index(options.interface.c_str()));
  }
  tap::Tap::Options tap_options;
  tap_options.ports = options.ports;
  tap_ = std::make_unique<tap::Tap>(tap_options, *exchanges_, local_.get());
}

Line::~Line() = default;

void Line::on_packet(const tap::Packet& packet) {
  tap_->on_packet(packet);
  if (const auto now = tap_->now(); now && *now >= books_due_) advance_books(*now);
}

void Line::advance_live(MonotonicTime now) {
  tap_->advance_live(now);
  if (const auto line_now = tap_->now()) advance_books(*line_now);
}

void Line::advance_books(LineTime now) {
  books_due_ = now + kBooksEvery;
  twins_->advance_to(now);
  targets_->advance_to(now, twins_->held_back());
  deploys_->advance_to(now);
  if (neighbours_.advance_to(now)) change_left_out();
  if (left_out_changed_) {
    left_out_changed_ = false;
    tap_->set_watch(watch_);
  }
}

void Line::on_other_traffic(const Endpoint& server, LineTime at) {
  if (!neighbours_.note_foreign(server, targets_->knows(server), at)) return;
  log::info("port {}: no inference server answers there; left out for a while", server.port);
  change_left_out();
}

// In the middle of a packet, perhaps: the tap is told behind it.
void Line::change_left_out() {
  watch_.left_out = neighbours_.left_out();
  left_out_changed_ = true;
  books_due_ = LineTime::min();
  ++watch_changes_;
}

void Line::set_child_ports(const Endpoint& parent, const std::vector<std::uint16_t>& ports) {
  child_ports_[parent] = ports;
  watch_.ports = ports_;
  for (const auto& [owner, children] : child_ports_) {
    for (const std::uint16_t port : children) {
      if (std::find(watch_.ports.begin(), watch_.ports.end(), port) == watch_.ports.end()) watch_.ports.push_back(port);
    }
  }
  // What the same user started later on a port of the settings is a server of its own.
  std::vector<std::uint16_t> children = ports;
  std::erase_if(children,
                [this](std::uint16_t port) { return std::find(ports_.begin(), ports_.end(), port) != ports_.end(); });
  targets_->set_child_ports(parent.port, children);
  ++watch_changes_;
  tap_->set_watch(watch_);
}

void Line::set_share(unsigned one_in) {
  watch_.one_in = one_in;
  ++watch_changes_;
  tap_->set_watch(watch_);
  targets_->set_share(one_in);
}

void Line::finish() {
  tap_->finish();
  twins_->finish();
  targets_->finish();
  if (const auto now = tap_->now()) deploys_->finish(*now);
}

void Line::warn_unreadable(std::uint16_t port, tap::ParseError why) {
  if (!warned_.emplace(port, why).second) return;
  if (why == tap::ParseError::kTls) {
    log::warning(
        "port {} speaks TLS, which cannot be read: name in [capture] ports the port where the engine itself answers "
        "plain "
        "HTTP, behind whatever ends the TLS",
        port);
  } else {
    log::warning(
        "port {} speaks HTTP/2, which is not read: let the clients, or the proxy in front, speak HTTP/1.1 to the "
        "engine",
        port);
  }
}

CaptureSnapshot Line::capture_snapshot(const std::string& interface, const tap::CaptureStats& stats) const {
  const tap::TapCounters tap = tap_->counters();
  const tap::HttpCounters& http = exchanges_->counters();
  CaptureSnapshot capture;
  capture.interface = interface;
  capture.packets = tap.packets;
  capture.dropped_packets = stats.dropped;
  capture.bytes = tap.table.bytes;
  capture.gaps = tap.streams.gaps;
  capture.missing_bytes = tap.streams.bytes_missing;
  capture.flows = tap.connections;
  capture.clock_steps = tap.clock_steps;
  capture.flows_ignored = {{"not_local", tap.table.ignored_not_local},
                           {"no_interest", tap.table.ignored_no_interest},
                           {"other_traffic", tap.table.ignored_left_out},
                           {"governor", tap.table.ignored_governor},
                           {"evicted", tap.table.evicted},
                           {"too_many_targets", targets_->exchanges_refused()}};
  for (std::size_t i = 0; i < http.parse_errors.size(); ++i) {
    const auto error = static_cast<tap::ParseError>(i);
    capture.parse_errors.emplace(tap::parse_error_name(error), http.of(error));
  }
  for (std::size_t i = 0; i < tap.decoded.size(); ++i) {
    const auto outcome = static_cast<tap::DecodeOutcome>(i);
    // Everything else is other traffic.
    if (outcome < tap::DecodeOutcome::kFragment) continue;
    capture.parse_errors.emplace(tap::decode_outcome_name(outcome), tap.decoded[i]);
  }
  return capture;
}

}  // namespace rooflined::daemon
