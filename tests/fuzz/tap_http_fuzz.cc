// Both sides of a connection, cut into pieces, with gaps and ends, through the whole HTTP half of the tap.
//
// Input: operations of one header byte each. The low three bits say what (0, 1, 2: bytes of the client; 3, 4, 5: bytes
// of the server; 6: gap; 7: FIN), the rest how much; bit 3 makes lengths sixteenfold.

#include "collectors/tap/exchange_factory.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>

namespace {

using namespace rooflined;
using namespace rooflined::tap;

// Every exchange begins once, ends once, and its times never go back.
class CheckingSink final : public ExchangeSink {
 public:
  void on_begin(const ExchangeBegin& begin) override { require(last_.emplace(begin.exchange, begin.at).second); }
  void on_recognised(ExchangeId exchange, ServerFamily, std::string_view) override {
    require(last_.contains(exchange));
  }
  void on_tokens(const TokenEvent& event) override {
    advance(event.exchange, event.at);
    require(event.tokens >= 1 && event.frames >= 1);
  }
  void on_prompt_tokens(ExchangeId exchange, std::uint64_t, LineTime at) override { advance(exchange, at); }
  void on_response_id(ExchangeId exchange, std::uint64_t, LineTime at) override { advance(exchange, at); }
  void on_client_window(ExchangeId exchange, bool, LineTime at) override { advance(exchange, at); }
  void on_loss(ExchangeId exchange, double tokens, LineTime at) override {
    require(tokens >= 0);
    advance(exchange, at);
  }
  void on_end(const ExchangeEnd& end) override {
    advance(end.exchange, end.at);
    last_.erase(end.exchange);
  }
  bool all_ended() const { return last_.empty(); }

 private:
  static void require(bool condition) {
    if (!condition) std::abort();
  }
  void advance(ExchangeId exchange, LineTime at) {
    const auto known = last_.find(exchange);
    require(known != last_.end() && at >= known->second);
    known->second = at;
  }
  std::map<ExchangeId, LineTime> last_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  CheckingSink sink;
  HttpLimits limits;
  limits.head_bytes_max = 2048;
  limits.request_body_bytes_max = 2048;
  limits.frame_bytes_max = 2048;
  limits.document_bytes_max = 2048;
  limits.sequences_max = 4;
  limits.pipelined_requests_max = 4;
  limits.hunted_bytes_max = 16384;
  ExchangeFactory factory(sink, limits);
  ConnectionInfo info;
  info.joined_late = (data[0] & 1) != 0;
  const auto handler = factory.open(info);
  std::span<const std::uint8_t> rest(data + 1, size - 1);
  std::int64_t now = 0;
  while (!rest.empty() && !handler->lost_interest()) {
    const std::uint8_t operation = rest[0];
    rest = rest.subspan(1);
    const auto kind = static_cast<unsigned>(operation & 7);
    std::size_t length = static_cast<std::size_t>(operation >> 4) + 1;
    if ((operation & 8) != 0) length *= 16;
    // Gaps are declared late: the bytes behind them are older than that.
    now += (operation & 16) != 0 ? 1000 : -300;
    const LineTime at = LineTime::from_ns(now);
    if (kind < 6) {
      const auto piece = rest.subspan(0, length < rest.size() ? length : rest.size());
      rest = rest.subspan(piece.size());
      handler->on_bytes(kind < 3 ? Direction::kToServer : Direction::kToClient, std::as_bytes(piece), at);
    } else if (kind == 6) {
      handler->on_gap((operation & 32) != 0 ? Direction::kToServer : Direction::kToClient,
                      {length * 4, GapCause::kHoleTooOld, LineTime::from_ns(now + 100000)});
    } else {
      handler->on_half_close((operation & 32) != 0 ? Direction::kToServer : Direction::kToClient, at);
    }
  }
  handler->on_close(CloseCause::kFinished, LineTime::from_ns(now));
  if (!sink.all_ended() || factory.counters().exchanges_in_flight != 0) std::abort();
  return 0;
}
