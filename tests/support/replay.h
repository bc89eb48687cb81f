// Runs packets through the whole line in a test, as `rooflined replay` does.

#pragma once

#include "collectors/tap/packet_source.h"
#include "daemon/replay_report.h"
#include "daemon/wiring.h"

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rooflined::test {

// A packet that owns its bytes.
struct StoredPacket {
  CaptureTime captured_at;
  std::vector<std::byte> bytes;
  std::uint32_t wire_length = 0;
  int link_type = 0;

  tap::Packet view() const { return tap::Packet{captured_at, bytes, wire_length, link_type}; }
};

class PacketStore final : public tap::PacketSink {
 public:
  std::vector<StoredPacket> packets;

  void on_packet(const tap::Packet& packet) override {
    packets.push_back(StoredPacket{
        packet.captured_at, {packet.bytes.begin(), packet.bytes.end()}, packet.wire_length, packet.link_type});
  }
};

// Empty where the file cannot be read.
inline std::vector<StoredPacket> read_packets(const std::string& path) {
  PacketStore store;
  auto source = tap::open_file(path);
  while (source) {
    const auto outcome = (*source)->read(store, std::chrono::milliseconds(0));
    if (!outcome || *outcome == tap::ReadOutcome::kFinished) break;
  }
  return std::move(store.packets);
}

// One replay: feed packets, finish, look.
class Replay {
 public:
  explicit Replay(std::uint16_t port, std::shared_ptr<const Geometry> geometry = nullptr,
                  RecordObserver* observer = nullptr)
      : Replay(std::vector<std::uint16_t>{port}, std::move(geometry), observer) {}
  explicit Replay(const std::vector<std::uint16_t>& ports, std::shared_ptr<const Geometry> geometry = nullptr,
                  RecordObserver* observer = nullptr)
      : geometry_(std::move(geometry)), observer_(observer), line_(options(ports)) {}

  void feed(const std::vector<StoredPacket>& packets) {
    for (const StoredPacket& packet : packets) line_.on_packet(packet.view());
  }
  void finish() { line_.finish(); }

  daemon::Line& line() { return line_; }

  nlohmann::json report(std::optional<BytesPerSecond> ceiling = std::nullopt) {
    return daemon::replay_json(daemon::replay_totals(line_), line_, latencies_, ceiling);
  }

 private:
  daemon::LineOptions options(const std::vector<std::uint16_t>& ports) {
    daemon::LineOptions options;
    options.ports = ports;
    options.local_only = false;
    options.targets.windows = {{"1m", std::chrono::minutes(1)}};
    options.on_found = [this](const daemon::Targets::Found& found) {
      daemon::TargetFacts facts;
      facts.geometry = geometry_;
      line_.targets().learn(found.endpoint, facts);
    };
    options.observer_for = [this](const Endpoint& endpoint) -> RecordObserver* {
      auto& log = latencies_[endpoint];
      log = std::make_unique<daemon::LatencyLog>();
      return observer_ != nullptr ? observer_ : log.get();
    };
    return options;
  }

  std::shared_ptr<const Geometry> geometry_;
  RecordObserver* observer_;
  daemon::LatencyLogs latencies_;
  daemon::Line line_;
};

}  // namespace rooflined::test
