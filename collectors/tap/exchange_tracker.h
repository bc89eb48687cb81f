// One request and its response, on their way to the books: reads both bodies and calls the ExchangeSink.
//
// Begins when the request is complete or its response begins; ends by the dialect's end marker, or when the connection
// says that the response is over. Frames that one segment completed are gathered, and flush() makes one token event of
// them for each sequence. Times given to the sink never go back. Bounded by HttpLimits; steady streams allocate
// nothing. Thread: one.

#pragma once

#include "collectors/tap/dialect_table.h"
#include "collectors/tap/exchange_body.h"
#include "collectors/tap/frame_memo.h"
#include "collectors/tap/http_buffer.h"
#include "collectors/tap/http_counters.h"
#include "collectors/tap/http_head.h"
#include "collectors/tap/other_traffic.h"
#include "collectors/tap/token_counter.h"
#include "metrics/base/time.h"
#include "metrics/exchange.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace rooflined::tap {

// What all connections of one tap share. Requires: outlives them.
struct TapContext {
  HttpLimits limits;
  HttpCounters counters;
  ExchangeSink& sink;
  DialectReader reader;
  ExchangeId last_exchange = 0;
  // A connection was let go because it speaks TLS or HTTP/2.
  std::function<void(const Endpoint& server, ParseError why)> on_unreadable;
  OtherTrafficSink* other_traffic = nullptr;  // may be none
};

class Exchange final : private FrameSink {
 public:
  // `route` by the request's path; without a dialect where no request was seen: then it begins with the first frame
  // that some dialect owns, as one that was joined late, and is none at all if no such frame comes.
  Exchange(TapContext& context, const Endpoint& server, const RouteFit& route);
  ~Exchange() override = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // The request. `announced`: the length that its head names.
  void request_announced(std::uint64_t bytes);
  void take_request(std::string_view bytes);
  void request_unreadable();  // encoded, or bytes are missing
  void request_complete(LineTime at);
  bool is_request_complete() const noexcept { return request_complete_; }
  LineTime request_completed_at() const noexcept { return completed_at_; }
  // Does nothing if it has begun. A request that may only load a model begins with its first token, dated `at`.
  void begin(LineTime at);

  // The response.
  void response_head(const ResponseHead& head, bool until_close, LineTime at);
  void response_body(std::string_view bytes, LineTime at);
  void response_missing(std::uint64_t bytes, LineTime at);
  void client_window(bool closed, LineTime at);
  // `complete`: its end was seen.
  void response_end(bool complete, LineTime at);
  void flush(LineTime at);

  bool begun() const noexcept { return begun_; }
  bool ended() const noexcept { return ended_; }
  // Some dialect owned a frame of the response.
  bool recognised() const noexcept { return recognised_; }

 private:
  struct Sequence {
    std::uint32_t choice = 0;
    TokenCounter counter;
    std::uint64_t characters = 0;
    std::uint64_t reasoning_tokens = 0;
    bool echo_seen = false;
    std::optional<std::uint64_t> total;
    std::optional<LineTime> finished_at;
    std::optional<std::uint64_t> draft_tokens;
    std::optional<std::uint64_t> draft_tokens_accepted;
    // Since the last flush.
    std::uint32_t pending_tokens = 0;
    std::uint32_t pending_frames = 0;
    std::uint32_t pending_characters = 0;
    TokenSource pending_source = TokenSource::kExactLive;
  };

  void on_frame(const Frame& frame) override;
  void apply_frame(bool own);
  bool is_exchange(const FrameFacts& facts);
  void apply_choice(const ChoiceFacts& facts);
  std::uint32_t new_characters(const ChoiceFacts& facts, Sequence& sequence);
  bool empty_text_is_token(const ChoiceFacts& facts) const;
  void apply_totals(const FrameFacts& facts);
  void apply_document();
  void begin_now();
  // `shape_known`: a frame of the dialect was read, so that it counts whose dialect it is.
  void recognise(const FrameFacts& facts, bool shape_known);
  void take_prompts(const FrameFacts& facts);
  void take_prompt_tokens(std::uint64_t tokens);
  double tokens_in(std::uint64_t bytes) const;
  Sequence* sequence_of(std::uint32_t choice);
  bool all_finished() const;
  Outcome outcome(bool marker, bool complete) const;
  void end(Outcome outcome);
  std::vector<SequenceTotal> totals();
  LineTime advance(LineTime at);

  TapContext& context_;
  Endpoint server_;
  const Dialect* dialect_;
  bool route_streamed_;
  ExchangeId id_ = 0;
  LineTime now_ = LineTime::min();
  LineTime completed_at_;
  std::optional<LineTime> begin_at_;

  bool orphan_;
  bool request_complete_ = false;
  bool request_readable_ = true;
  bool tentative_ = false;  // may turn out to load a model only
  bool begun_ = false;
  bool ended_ = false;
  bool recognised_ = false;
  bool response_id_known_ = false;
  bool error_ = false;
  bool server_aborted_ = false;
  bool until_close_ = false;
  bool pending_ = false;
  std::size_t request_bytes_max_;
  TextBuffer request_;
  RequestFacts request_facts_;

  ResponseBody body_;
  std::uint64_t body_bytes_ = 0;    // as seen
  std::uint64_t tokens_borne_ = 0;  // by them, all sequences together
  bool body_skipped_ = false;
  ServerFamily family_ = ServerFamily::kUnknown;
  bool python_server_ = false;  // `Server: uvicorn`
  bool remote_ = false;         // another host generates this
  VersionText version_;
  FrameMemo memo_;
  std::vector<Sequence> sequences_;
  std::optional<std::uint64_t> sum_total_;
  std::optional<std::uint64_t> prompt_tokens_;
  std::vector<std::uint64_t> prompt_lengths_;  // one by one, where a list of them was sent; 0: unknown
  std::uint32_t last_finished_ = 0;            // choice
};

}  // namespace rooflined::tap
