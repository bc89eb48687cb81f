#include "collectors/tap/http_connection.h"

#include "collectors/tap/http_head.h"

#include <algorithm>
#include <utility>

namespace rooflined::tap {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// RFC 9112 §6.3, what both directions share.
BodyFraming framing_of(const HeadFields& fields, BodyFraming::Kind without) {
  if (fields.transfer_encoding) {
    return {fields.chunked ? BodyFraming::Kind::kChunked : BodyFraming::Kind::kUntilClose, 0};
  }
  if (fields.content_length) return {BodyFraming::Kind::kLength, *fields.content_length};
  return {without, 0};
}

}  // namespace

HttpConnection::HttpConnection(TapContext& context, const ConnectionInfo& info)
    : context_(context),
      endpoint_(info.server),
      client_(Direction::kToServer, info.joined_late, context.limits, context.counters, *this),
      server_(Direction::kToClient, info.joined_late, context.limits, context.counters, *this),
      bytes_at_{info.opened_at, info.opened_at} {}

void HttpConnection::on_bytes(Direction direction, std::span<const std::byte> bytes, LineTime captured_at) {
  if (lost_interest_) return;
  bytes_at(direction) = captured_at;
  parser(direction).feed(as_text(bytes), captured_at);
  if (direction == Direction::kToClient && answering_ && answering_->exchange) answering_->exchange->flush(captured_at);
}

void HttpConnection::on_gap(Direction direction, const Gap& gap) {
  if (!lost_interest_) parser(direction).gap(gap.bytes_missing, bytes_at(direction));
}

void HttpConnection::on_client_window(bool closed, LineTime at) {
  if (answering_ && answering_->exchange) answering_->exchange->client_window(closed, at);
}

void HttpConnection::on_half_close(Direction direction, LineTime at) {
  if (lost_interest_) return;
  // A client that has said all it wants to say still listens.
  parser(direction).finish(at);
  if (direction == Direction::kToClient) end_all(at);
}

void HttpConnection::on_close(CloseCause, LineTime at) {
  end_all(at);
}

// Ends every turn so far: no response, or no more of it, will come.
void HttpConnection::drop_waiting(LineTime at) {
  if (answering_) end_response(false, at);
  // Each end lets the next one begin, if its request is complete.
  while (!waiting_.empty()) {
    take_turn();
    end_response(false, at);
  }
}

void HttpConnection::end_all(LineTime at) {
  drop_waiting(at);
  client_.stop();
  server_.stop();
}

BodyFraming HttpConnection::on_head(Direction direction, std::string_view head, LineTime at) {
  return direction == Direction::kToServer ? request_head(head, at) : response_head(head, at);
}

BodyFraming HttpConnection::request_head(std::string_view head, LineTime at) {
  const auto request = parse_request_head(head);
  if (!request) {
    context_.counters.count(ParseError::kHead);
    return {BodyFraming::Kind::kNotAHead, 0};
  }
  ++context_.counters.requests;
  if (request->fields.contradictory) context_.counters.count(ParseError::kHead);
  // A new request while the last one's end was lost: that one is over.
  close_request(at);
  // The same for a response: nobody asks again before it is over, unless he pipelines.
  if (server_.hunting() && !pipelines_) drop_waiting(at);
  if (waiting_.size() >= context_.limits.pipelined_requests_max) {
    on_foreign(Direction::kToServer, ParseError::kTooManyRequests, at);
    return {BodyFraming::Kind::kOpaque, 0};
  }
  auto turn = std::make_unique<Turn>();
  turn->head_method = request->method == "HEAD";
  turn->connect_method = request->method == "CONNECT";
  turn->expects_continue = request->expects_continue;
  turn->foreign = !is_engine_route(request->path);
  const RouteFit route = request->method == "POST" ? dialect_of_route(request->path) : RouteFit{};
  if (route.dialect != nullptr) {
    turn->exchange = std::make_unique<Exchange>(context_, endpoint_, route);
    turn->exchange->request_announced(request->fields.content_length.value_or(0));
    if (request->fields.coding != ContentCoding::kIdentity) {
      context_.counters.count(ParseError::kEncoded);
      turn->exchange->request_unreadable();
    }
  }
  asking_ = turn.get();
  waiting_.push_back(std::move(turn));
  return framing_of(request->fields, BodyFraming::Kind::kNone);
}

BodyFraming HttpConnection::response_head(std::string_view head, LineTime at) {
  const auto response = parse_response_head(head);
  if (!response) {
    context_.counters.count(ParseError::kHead);
    return {BodyFraming::Kind::kNotAHead, 0};
  }
  if (response->status == 101) {
    if (response->http2_upgrade) {
      on_foreign(Direction::kToClient, ParseError::kHttp2, at);
    } else {
      end_all(at);
      lost_interest_ = true;
    }
    return {BodyFraming::Kind::kOpaque, 0};
  }
  if (response->status < 200) return {BodyFraming::Kind::kInterim, 0};
  ++context_.counters.responses;
  turn_after_loss(at);
  response_lossy_ = false;
  if (response->fields.contradictory) context_.counters.count(ParseError::kHead);
  // Stray bytes in front of this head took the turn that is its own. Otherwise the end of the one before was lost.
  const bool taken = answering_ && answering_->stray && !answering_->unknown &&
                     !(answering_->exchange && answering_->exchange->recognised());
  if (!taken) {
    if (answering_) end_response(false, at);
    take_turn();
  }
  answering_->stray = false;
  if (is_engine_header(response->server)) answering_->foreign = false;
  if (asking_ == answering_.get() && answering_->expects_continue && response->status >= 300) {
    client_.body_may_be_missing();
  }
  BodyFraming framing = framing_of(response->fields, BodyFraming::Kind::kUntilClose);
  const bool bodyless = answering_->head_method || response->status == 204 || response->status == 304;
  if (bodyless) framing = {BodyFraming::Kind::kNone, 0};
  if (answering_->connect_method && response->status < 300) {
    end_all(at);
    lost_interest_ = true;
    return {BodyFraming::Kind::kOpaque, 0};
  }
  if (answering_->exchange) {
    answering_->exchange->response_head(*response, framing.kind == BodyFraming::Kind::kUntilClose, at);
  }
  return framing;
}

// Makes the oldest waiting request the one that is being answered, or an unknown one where none waits.
void HttpConnection::take_turn() {
  if (waiting_.empty()) {
    answering_ = std::make_unique<Turn>();
    answering_->unknown = true;
    answering_->exchange = std::make_unique<Exchange>(context_, endpoint_, RouteFit{});
    return;
  }
  answering_ = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
}

void HttpConnection::on_body(Direction direction, std::string_view bytes, LineTime at) {
  if (direction == Direction::kToServer) {
    if (asking_ == nullptr) return;
    asking_->expects_continue = false;
    if (asking_->exchange) asking_->exchange->take_request(bytes);
    return;
  }
  take_response_bytes(bytes, at);
}

void HttpConnection::on_missing(Direction direction, std::uint64_t bytes, LineTime at) {
  if (direction == Direction::kToServer) {
    if (asking_ != nullptr && asking_->exchange) asking_->exchange->request_unreadable();
    return;
  }
  response_lossy_ = true;
  Turn* turn = answering_ ? answering_.get() : waiting_.empty() ? nullptr : waiting_.front().get();
  if (turn != nullptr && turn->exchange) turn->exchange->response_missing(bytes, at);
}

void HttpConnection::on_stray(Direction direction, std::string_view bytes, LineTime at) {
  if (direction == Direction::kToServer) return;
  if (!take_response_bytes(bytes, at)) return;
  if (answering_->exchange->recognised()) server_.confirm();
}

// Without a head these are bytes of a response that began before us, or whose head was lost: found between two chunks
// or in the middle of one. False where nobody wants them.
bool HttpConnection::take_response_bytes(std::string_view bytes, LineTime at) {
  turn_after_loss(at);
  if (!answering_) {
    take_turn();
    answering_->stray = true;
  }
  if (!answering_->exchange) return false;
  answering_->exchange->response_body(bytes, at);
  return true;
}

void HttpConnection::on_message_end(Direction direction, bool complete, LineTime at) {
  if (direction == Direction::kToServer) {
    close_request(at);
  } else if (answering_) {
    // The next request was there before this response was over: that is pipelining, and no loss that we do not know of
    // yet.
    if (complete && !response_lossy_ && !waiting_.empty()) pipelines_ = true;
    end_response(complete, at);
  }
}

// Response bytes that crossed the wire after the next request was sent belong to that one's response, if the end of the
// one before may have been lost and the client is not known to pipeline.
void HttpConnection::turn_after_loss(LineTime at) {
  if (!response_lossy_ || pipelines_ || !answering_ || waiting_.empty()) return;
  const Exchange* next = waiting_.front()->exchange.get();
  if (next == nullptr || !next->is_request_complete() || at < next->request_completed_at()) return;
  end_response(false, bytes_at(Direction::kToServer));
  take_turn();
  answering_->stray = true;
}

void HttpConnection::close_request(LineTime at) {
  Turn* turn = std::exchange(asking_, nullptr);
  if (turn == nullptr || !turn->exchange) return;
  turn->exchange->request_complete(at);
  begin_next();
}

void HttpConnection::end_response(bool complete, LineTime at) {
  const std::unique_ptr<Turn> turn = std::move(answering_);
  if (asking_ == turn.get()) asking_ = nullptr;
  response_ended_at_ = at;
  if (turn->exchange) turn->exchange->response_end(complete, at);
  if (!turn->exchange && turn->foreign) tell_other_traffic(at);
  begin_next();
}

void HttpConnection::tell_other_traffic(LineTime at) {
  if (context_.other_traffic != nullptr) context_.other_traffic->on_other_traffic(endpoint_, at);
}

// The oldest waiting request begins once it is complete and nothing is being answered before it.
void HttpConnection::begin_next() {
  if (answering_ || waiting_.empty()) return;
  Exchange* exchange = waiting_.front()->exchange.get();
  if (exchange == nullptr || !exchange->is_request_complete()) return;
  exchange->begin(std::max(exchange->request_completed_at(), response_ended_at_));
}

void HttpConnection::on_foreign(Direction, ParseError why, LineTime at) {
  context_.counters.count(why);
  const bool unreadable = why == ParseError::kTls || why == ParseError::kHttp2;
  if (unreadable && context_.on_unreadable) context_.on_unreadable(endpoint_, why);
  end_all(at);
  lost_interest_ = true;
  // One client that asks too much at once says nothing about the server.
  if (why != ParseError::kTooManyRequests) tell_other_traffic(at);
}

}  // namespace rooflined::tap
