// All TCP connections to the watched ports: finds the one that a segment belongs to, puts both its directions in order,
// and tells a ConnectionHandler.
//
//   in:   TCP segments with their line time; line time itself
//   out:  for each connection with payload a handler from the factory, its ordered bytes, gaps, half-closes and its
//   close
//
// A connection without payload (health checks, scans) costs one small table entry. Bounds: the number of connections,
// waiting bytes per stream and in all, idle times; over the bound the longest idle connection goes, those without
// payload first. Ended connections stay for a few seconds, so that a second copy of their last packets makes no new
// one. Threads: one.

#pragma once

#include "collectors/tap/connection.h"
#include "collectors/tap/flow.h"
#include "collectors/tap/local_host.h"
#include "collectors/tap/stream_assembler.h"
#include "collectors/tap/tcp_segment.h"
#include "collectors/tap/watch.h"
#include "metrics/base/time.h"

#include <array>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace rooflined::tap {

struct TableLimits {
  std::size_t connections_max = 16384;
  std::size_t waiting_bytes_max = 32 * 1024 * 1024;  // over all streams
  std::chrono::seconds idle_without_payload_max{30};
  // A stream may be silent for ten minutes: a long prompt on a slow machine.
  std::chrono::seconds idle_max{900};
  std::chrono::seconds ignored_idle_max{60};
  std::chrono::seconds closed_kept{5};
  StreamAssembler::Limits stream;
  // For the direction to the server: what a client's network loses is repeated, and a request may wait for it.
  std::chrono::milliseconds request_hole_age_max{3000};
};

struct TableCounters {
  std::uint64_t segments = 0;             // of watched connections
  std::uint64_t other_port = 0;           // segments of no watched port
  std::uint64_t bytes = 0;                // payload as captured, repeats included
  std::uint64_t ignored_not_local = 0;    // connections
  std::uint64_t ignored_no_interest = 0;  // connections, by their handler
  std::uint64_t ignored_governor = 0;     // connections outside the share
  std::uint64_t ignored_left_out = 0;     // connections to servers that are left out
  std::uint64_t evicted = 0;
  std::uint64_t resets_ignored = 0;  // a RST outside the stream
};

struct ConnectionKey {
  Endpoint server;
  Endpoint client;
  friend bool operator==(const ConnectionKey&, const ConnectionKey&) = default;
};

class ConnectionTable {
 public:
  // `local` nullptr: every server counts (capture files). Requires: `factory` and `local` outlive the table.
  ConnectionTable(std::span<const std::uint16_t> ports, const TableLimits& limits, ConnectionFactory& factory,
                  LocalHost* local);
  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  // `at` is the segment's own time, which may be a little before that of the last advance_to().
  void accept(const TcpSegment& segment, LineTime at);

  // Requires: `now` never goes back. Cheap where nothing is due.
  void advance_to(LineTime now) {
    if (now >= sweep_due_) sweep(now);
  }

  // Ports, servers left out and share from now on; connections that are outside of it are closed. Not from within a
  // handler.
  void set_watch(const Watch& watch, LineTime now);

  // Closes everything with kEndOfCapture. The table is empty afterwards.
  void finish(LineTime now);

  const TableCounters& counters() const noexcept { return counters_; }
  // Of both directions, and of what servers sent.
  StreamCounters stream_counters() const noexcept {
    return environment_.request_counters + environment_.response_counters;
  }
  const StreamCounters& response_counters() const noexcept { return environment_.response_counters; }
  std::uint64_t connections_opened() const noexcept { return environment_.opened; }
  std::uint64_t connections_joined_late() const noexcept { return environment_.joined_late; }
  std::size_t size() const noexcept { return connections_.size(); }
  // Those with a handler.
  std::size_t open_connections() const noexcept { return environment_.with_handler; }
  std::size_t waiting_bytes() const noexcept { return environment_.budget.bytes; }

 private:
  enum class Stage : std::uint8_t { kHandshake, kOpen, kIgnored, kClosed };
  static constexpr std::size_t kStages = 4;

  struct Connection {
    ConnectionKey key;
    Stage stage = Stage::kHandshake;
    bool own_address = true;
    LineTime opened_at;
    LineTime last_at;  // of the latest segment; for kClosed, of the close
    // The initial sequence numbers, where the handshake showed them.
    std::optional<std::uint32_t> client_isn;
    std::optional<std::uint32_t> server_isn;
    std::optional<std::uint8_t> client_window_scale;
    std::unique_ptr<Flow> flow;  // from the first payload or FIN to the close
    // The list of its stage, least recently used first.
    Connection* older = nullptr;
    Connection* newer = nullptr;
  };
  struct KeyHash {
    std::array<std::uint64_t, 2> secret;
    // Not noexcept, so that the container keeps the hash beside each key.
    std::size_t operator()(const ConnectionKey& key) const;
  };
  struct StageList {
    Connection* oldest = nullptr;
    Connection* newest = nullptr;
  };
  using Connections = std::unordered_map<ConnectionKey, Connection, KeyHash>;

  struct Place {
    ConnectionKey key;
    bool to_server;
  };
  std::optional<Place> place(const TcpSegment& segment) const;

  Connection* find(const ConnectionKey& key);
  Connection* create(const Place& place, const TcpSegment& segment, LineTime at);
  Locality judge(const Place& place, const TcpSegment& segment, LineTime at) const;
  void make_room(LineTime at);
  bool ignore_unwatched(Connection& connection);
  void erase(Connection& connection);
  void move_to(Connection& connection, Stage stage);
  void unlink(Connection& connection);
  void link(Connection& connection);
  void touch(Connection& connection, LineTime at);

  bool begins_anew(const Connection& connection, const TcpSegment& segment, bool to_server) const;
  void learn_handshake(Connection& connection, const TcpSegment& segment, bool to_server);
  void accept_reset(Connection& connection, const TcpSegment& segment, bool to_server, LineTime at);
  void accept_stream(Connection& connection, const TcpSegment& segment, bool to_server, LineTime at);
  static void watch_window(Flow& flow, const TcpSegment& segment, bool to_server, LineTime at);
  void open_flow(Connection& connection, const TcpSegment& segment, bool to_server, LineTime at);
  void close(Connection& connection, CloseCause cause, LineTime at);
  void drop_flow(Connection& connection);
  void watch_holes(Connection& connection);
  void settle(Connection& connection, LineTime at);

  void sweep(LineTime now);
  void sweep_holes(LineTime now);
  void sweep_idle(Stage stage, Duration idle_max, LineTime now);

  std::bitset<65536> watched_;
  std::vector<Endpoint> left_out_;
  unsigned one_in_ = 1;
  TableLimits limits_;
  LocalHost* local_;
  TableCounters counters_;
  FlowEnvironment environment_;
  Connections connections_;
  std::array<StageList, kStages> lists_{};
  Connection* last_ = nullptr;  // of the last segment: an acknowledgment is most often of the same connection
  std::vector<Connection*> with_holes_;
  LineTime sweep_due_ = LineTime::min();
};

}  // namespace rooflined::tap
