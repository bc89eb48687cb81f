// One connection: pairs requests with responses and carries both to their exchanges.
//
// HTTP/1.x answers in order, so a queue is enough, pipelined or not. Where bytes were lost, the pairing is found again
// by what a client does: without pipelining it sends a request only when the response before it is over. A connection
// that waits between exchanges holds no buffers. Thread: one.

#pragma once

#include "collectors/tap/connection.h"
#include "collectors/tap/exchange_tracker.h"
#include "collectors/tap/http_parser.h"

#include <array>
#include <memory>
#include <vector>

namespace rooflined::tap {

class HttpConnection final : public ConnectionHandler, private HttpParserSink {
 public:
  HttpConnection(TapContext& context, const ConnectionInfo& info);

  void on_bytes(Direction direction, std::span<const std::byte> bytes, LineTime captured_at) override;
  void on_gap(Direction direction, const Gap& gap) override;
  void on_client_window(bool closed, LineTime at) override;
  void on_half_close(Direction direction, LineTime at) override;
  void on_close(CloseCause cause, LineTime at) override;
  bool lost_interest() const override { return lost_interest_; }

 private:
  // A request, whatever it is for: responses are paired by order. Only generation routes have an exchange.
  struct Turn {
    std::unique_ptr<Exchange> exchange;
    bool head_method = false;
    bool connect_method = false;
    bool expects_continue = false;  // and waits with its body
    bool foreign = false;           // a path that no inference server has
    bool unknown = false;           // the request was not seen
    bool stray = false;             // taken because of bytes that may belong to its response: no head was seen
  };

  BodyFraming on_head(Direction direction, std::string_view head, LineTime at) override;
  void on_body(Direction direction, std::string_view bytes, LineTime at) override;
  void on_missing(Direction direction, std::uint64_t bytes, LineTime at) override;
  void on_stray(Direction direction, std::string_view bytes, LineTime at) override;
  void on_message_end(Direction direction, bool complete, LineTime at) override;
  void on_foreign(Direction direction, ParseError why, LineTime at) override;

  BodyFraming request_head(std::string_view head, LineTime at);
  BodyFraming response_head(std::string_view head, LineTime at);
  void close_request(LineTime at);
  void take_turn();
  void end_response(bool complete, LineTime at);
  void begin_next();
  void drop_waiting(LineTime at);
  void tell_other_traffic(LineTime at);
  void end_all(LineTime at);
  void turn_after_loss(LineTime at);
  bool take_response_bytes(std::string_view bytes, LineTime at);
  LineTime& bytes_at(Direction direction) { return bytes_at_[static_cast<std::size_t>(direction)]; }
  HttpParser& parser(Direction direction) { return direction == Direction::kToServer ? client_ : server_; }

  TapContext& context_;
  Endpoint endpoint_;
  HttpParser client_;
  HttpParser server_;
  std::vector<std::unique_ptr<Turn>> waiting_;  // requests whose response has not begun
  std::unique_ptr<Turn> answering_;             // the one whose response is under way
  Turn* asking_ = nullptr;                      // the one whose request is under way: in either of those, or gone
  LineTime response_ended_at_ = LineTime::min();
  // Gaps are declared long after they happened: what they cause is dated by the last bytes before them.
  std::array<LineTime, 2> bytes_at_;
  // Response bytes went missing since the last head: the end of the response may be among them.
  bool response_lossy_ = false;
  bool pipelines_ = false;
  bool lost_interest_ = false;
};

}  // namespace rooflined::tap
