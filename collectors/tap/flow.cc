#include "collectors/tap/flow.h"

namespace rooflined::tap {

Flow::Flow(FlowEnvironment& environment, const ConnectionInfo& info)
    : environment_(environment),
      info_(info),
      to_server_(*this, Direction::kToServer, environment.request_limits, environment.request_counters),
      to_client_(*this, Direction::kToClient, environment.response_limits, environment.response_counters) {}

Flow::~Flow() {
  if (handler_ != nullptr) --environment_.with_handler;
}

void Flow::advance_to(LineTime now) {
  to_server_.assembler.advance_to(now);
  to_client_.assembler.advance_to(now);
}

void Flow::close(CloseCause cause, LineTime at) {
  to_server_.assembler.close(at);
  to_client_.assembler.close(at);
  if (handler_ != nullptr) handler_->on_close(cause, at);
}

void Flow::tell_client_window(LineTime at) {
  if (handler_ != nullptr) handler_->on_client_window(client_window.closed(), at);
}

ConnectionHandler& Flow::handler() {
  if (handler_ == nullptr) {
    handler_ = environment_.factory.open(info_);
    ++environment_.with_handler;
    ++environment_.opened;
    if (info_.joined_late) ++environment_.joined_late;
    for (const Side* side : {&to_server_, &to_client_}) {
      if (side->early_end) handler_->on_half_close(side->direction, *side->early_end);
    }
  }
  return *handler_;
}

void Flow::Side::on_bytes(std::span<const std::byte> bytes, LineTime captured_at) {
  flow.handler().on_bytes(direction, bytes, captured_at);
}

void Flow::Side::on_gap(const Gap& gap) {
  flow.handler().on_gap(direction, gap);
}

void Flow::Side::on_end(LineTime at) {
  if (flow.handler_ == nullptr) {
    early_end = at;
  } else {
    flow.handler_->on_half_close(direction, at);
  }
}

}  // namespace rooflined::tap
