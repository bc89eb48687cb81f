#include "collectors/tap/tap.h"

#include <algorithm>

namespace rooflined::tap {

Tap::Tap(const Options& options, ConnectionFactory& factory, LocalHost* local)
    : table_(options.ports, options.limits, factory, local) {}

void Tap::on_packet(const Packet& packet) {
  ++packets_;
  const LineTime at = clock_.stamp(packet.captured_at);
  first_time_ = first_time_ ? std::min(*first_time_, at) : at;
  advance_to(at);
  TcpSegment segment;
  const DecodeOutcome outcome = decode_tcp(packet, segment);
  ++decoded_[static_cast<std::size_t>(outcome)];
  if (outcome == DecodeOutcome::kTcp) table_.accept(segment, at);
}

void Tap::advance_live(MonotonicTime now) {
  if (const auto line_now = clock_.now(now)) advance_to(*line_now);
}

void Tap::advance_to(LineTime now) {
  if (now_ && now <= *now_) return;
  now_ = now;
  table_.advance_to(now);
}

void Tap::finish() {
  if (now_) table_.finish(*now_);
}

void Tap::set_watch(const Watch& watch) {
  table_.set_watch(watch, now_.value_or(LineTime()));
}

TapCounters Tap::counters() const {
  TapCounters counters;
  counters.packets = packets_;
  counters.clock_steps = clock_.steps();
  counters.decoded = decoded_;
  counters.table = table_.counters();
  counters.streams = table_.stream_counters();
  counters.responses = table_.response_counters();
  counters.connections_opened = table_.connections_opened();
  counters.connections_joined_late = table_.connections_joined_late();
  counters.connections = table_.open_connections();
  return counters;
}

}  // namespace rooflined::tap
