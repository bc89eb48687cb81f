// The two streams of one connection and their handler, which is made at the first byte of payload or the first gap.

#pragma once

#include "collectors/tap/client_window.h"
#include "collectors/tap/connection.h"
#include "collectors/tap/stream_assembler.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace rooflined::tap {

// What all flows of a table share.
struct FlowEnvironment {
  ConnectionFactory& factory;
  StreamAssembler::Limits request_limits;
  StreamAssembler::Limits response_limits;
  WaitingBudget budget;
  StreamCounters request_counters;
  StreamCounters response_counters;
  std::size_t with_handler = 0;   // flows that have one now
  std::uint64_t opened = 0;       // handlers made so far
  std::uint64_t joined_late = 0;  // the same, where the handshake was not seen
};

class Flow {
 public:
  // Requires: `environment` outlives the flow.
  Flow(FlowEnvironment& environment, const ConnectionInfo& info);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  StreamAssembler& stream(Direction direction) { return side(direction).assembler; }
  bool ended() const { return to_server_.assembler.ended() && to_client_.assembler.ended(); }
  bool lost_interest() const { return handler_ != nullptr && handler_->lost_interest(); }
  bool has_hole() const { return to_server_.assembler.deadline() || to_client_.assembler.deadline(); }
  void advance_to(LineTime now);
  // Delivers what waits, and the close to the handler.
  void close(CloseCause cause, LineTime at);

  // What client_window says now, to the handler.
  void tell_client_window(LineTime at);

  ClientWindow client_window;  // fed by the table

  static constexpr std::size_t kNotListed = static_cast<std::size_t>(-1);
  std::size_t hole_slot = kNotListed;  // for the table: its place in the list of flows with holes

 private:
  struct Side final : StreamSink {
    Side(Flow& owner, Direction way, const StreamAssembler::Limits& limits, StreamCounters& counters)
        : flow(owner), direction(way), assembler(limits, owner.environment_.budget, counters, *this) {}
    void on_bytes(std::span<const std::byte> bytes, LineTime captured_at) override;
    void on_gap(const Gap& gap) override;
    void on_end(LineTime at) override;

    Flow& flow;
    Direction direction;
    StreamAssembler assembler;
    std::optional<LineTime> early_end;  // its half-close, from before there was a handler
  };

  Side& side(Direction direction) { return direction == Direction::kToServer ? to_server_ : to_client_; }
  ConnectionHandler& handler();

  FlowEnvironment& environment_;
  ConnectionInfo info_;
  std::unique_ptr<ConnectionHandler> handler_;
  Side to_server_;
  Side to_client_;
};

}  // namespace rooflined::tap
