// What the tap tells the books: exchanges begin, bear tokens, and end.
//
// The tap (collectors/tap) calls an ExchangeSink on the capture thread, in the order in which segments were delivered.
// Times are line times of the segment that completed the thing described; for one exchange they never go back.
// No text, header or client address is in here, by design: counts and times only.

#pragma once

#include "metrics/base/time.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace rooflined {

// Counts up within one run of the process (or one replay); never used again.
using ExchangeId = std::uint64_t;

enum class ServerFamily : std::uint8_t {
  kUnknown,  // speaks a known dialect, and nothing says whose
  kLlamaCpp,
  kVllm,
  kSglang,
  kOllama,
  kTgi,
  kKoboldCpp,
  kTensorRtLlm,
  kLmDeploy,
  kMlc,
  kAphrodite,
  kLmStudio,
};

// "llama.cpp", "vllm", …; kUnknown is "openai": it speaks the OpenAI dialect and says nothing else about itself.
std::string_view family_name(ServerFamily family);
// The reverse of family_name(); kUnknown for anything else.
ServerFamily family_from_name(std::string_view name);

// The listener of a server. IPv4 addresses are kept as IPv4-mapped IPv6.
struct Endpoint {
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// Of a model's name as a request, a response or a server's list spells it: never 0, and the same for all spellings of
// one name ("llama3" and "Llama3:latest", "org/m" and "org\/m" in JSON).
std::uint64_t model_name_hash(std::string_view name);

// How the number of tokens of an event is known; wire-formats.md §1.1.
enum class TokenSource : std::uint8_t {
  kExactLive,   // a cumulative counter or a list of ids on the frame itself
  kExactFinal,  // counted from frames, then confirmed or corrected by the total at the end
  kEstimated,   // counted from frames or text, and never confirmed
};

struct ExchangeBegin {
  ExchangeId exchange = 0;
  Endpoint server;
  // Last byte of the request (T0); of a pipelined request, the end of the response before it where that is later.
  LineTime at;
  bool streamed = false;
  // True where the capture began in the middle of the response: no T0, and the first token was not seen.
  bool joined_late = false;
  // Size of the prompt's text in the request body, 0 where unknown: the books learn characters per token from it.
  std::uint64_t prompt_characters = 0;
  // Exact where the request itself holds token ids. As the characters, of all its prompts together.
  std::optional<std::uint64_t> prompt_tokens;
  std::uint32_t prompts = 1;  // each with sequences of its own
  // model_name_hash() of the model that was asked for, the name itself is not kept; 0: not known.
  std::uint64_t model = 0;
};

// The frames of one sequence (= one choice of one exchange) that one TCP segment completed.
struct TokenEvent {
  ExchangeId exchange = 0;
  std::uint32_t choice = 0;
  LineTime at;
  std::uint32_t tokens = 0;  // at least 1
  std::uint32_t frames = 0;  // at least 1; more than one means merged frames or a burst
  TokenSource source = TokenSource::kEstimated;
  std::uint32_t characters = 0;  // of the text in those frames; 0 where the wire shows ids only
};

enum class Outcome : std::uint8_t { kOk, kAborted, kError };

// What is known of one sequence when its exchange ends.
struct SequenceTotal {
  std::uint32_t choice = 0;
  // The exact number of output tokens, the unseen stop token included; nullopt where no total was on the wire.
  std::optional<std::uint64_t> tokens = {};
  // When the frame that finished the sequence (finish_reason, stop) came, where one did.
  std::optional<LineTime> finished_at = {};
  std::uint64_t characters = 0;  // of its whole text as seen
  // Draft tokens proposed and accepted for this sequence, where the server says.
  std::optional<std::uint64_t> draft_tokens = {};
  std::optional<std::uint64_t> draft_tokens_accepted = {};
};

struct ExchangeEnd {
  ExchangeId exchange = 0;
  LineTime at;
  Outcome outcome = Outcome::kOk;
  // All sequences that bore a token or have a total.
  std::span<const SequenceTotal> sequences;
  // Draft tokens proposed and accepted, where the server says: it speculates.
  std::optional<std::uint64_t> draft_tokens;
  std::optional<std::uint64_t> draft_tokens_accepted;
};

class ExchangeSink {
 public:
  virtual ~ExchangeSink() = default;

  // A request on a generation route is complete, or its response began. Every begun exchange ends.
  virtual void on_begin(const ExchangeBegin& begin) = 0;
  // The response is of a dialect that we know (again whenever the wire says more about the server). Only now is it sure
  // that an inference server is there. `version` may be empty.
  virtual void on_recognised(ExchangeId exchange, ServerFamily family, std::string_view version) = 0;
  virtual void on_tokens(const TokenEvent& event) = 0;
  // The exact length of the prompt (of all of them together), cached tokens included. Often late, sometimes never.
  virtual void on_prompt_tokens(ExchangeId exchange, std::uint64_t tokens, LineTime at) = 0;
  // The hash of the id that the server gave to the response, once for an exchange: a proxy in front of an engine passes
  // it on.
  virtual void on_response_id(ExchangeId exchange, std::uint64_t hash, LineTime at) = 0;
  // The client's receive window closed, or opened again: meanwhile the server cannot send, whatever it generates.
  virtual void on_client_window(ExchangeId exchange, bool closed, LineTime at) = 0;
  // Bytes of this exchange's response are missing, which bore about so many tokens (0: unknown), all sequences
  // together.
  virtual void on_loss(ExchangeId exchange, double tokens, LineTime at) = 0;
  virtual void on_end(const ExchangeEnd& end) = 0;
};

}  // namespace rooflined
