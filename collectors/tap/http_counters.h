// The bounds of the HTTP half of the tap, and what it counts.

#pragma once

#include "collectors/tap/http_buffer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rooflined::tap {

struct HttpLimits {
  std::size_t head_bytes_max = 64 * 1024;
  std::size_t chunk_line_bytes_max = 4096;
  // More of a request body than this is skipped: its prompt's size stays unknown.
  std::size_t request_body_bytes_max = 1024 * 1024;
  // Of such a body, this much of its start is looked at.
  std::size_t request_start_bytes_max = 16 * 1024;
  // Ollama's last line holds the ids of the whole context.
  std::size_t frame_bytes_max = 4 * 1024 * 1024;
  std::size_t document_bytes_max = 4 * 1024 * 1024;
  std::size_t pipelined_requests_max = 64;
  std::size_t sequences_max = 128;
  // Bytes looked at for a way back into a stream before the connection is taken for something else.
  std::uint64_t hunted_bytes_max = 16 * 1024 * 1024;
};

// Why bytes could not be read; the label `reason` of rooflined_parse_errors_total.
enum class ParseError : std::uint8_t {
  kTls,               // TLS on a watched port: the connection is let go
  kHttp2,             // HTTP/2 preface or upgrade: let go
  kNotHttp,           // other traffic: let go
  kHead,              // a head that is none, or framing that contradicts itself
  kHeadTooLong,       //
  kChunk,             // chunk framing broken; hunting for the next plausible place
  kEncoded,           // a content coding that we cannot take off
  kJson,              // a frame or a body that is no JSON
  kFrameTooLong,      // an event over frame_bytes_max
  kDocumentTooLong,   // a non-streamed answer over document_bytes_max
  kRequestTooLong,    // a request body over request_body_bytes_max
  kTooManyRequests,   // pipelined, unanswered: let go
  kTooManySequences,  // choices of one exchange
  kImplausible,       // a counter that jumps further than any server could generate
  kHiddenChoices,     // beams, or candidates of which the best is sent: their cache is read, and not seen
  kCount,
};

std::string_view parse_error_name(ParseError error);

struct HttpCounters {
  std::uint64_t requests = 0;        // request heads of any kind
  std::uint64_t responses = 0;       // final response heads of any kind
  std::uint64_t frames = 0;          // stream events with data, comments aside
  std::uint64_t frames_unknown = 0;  // of those, of no dialect's shape
  std::uint64_t frames_cleaned = 0;  // read only after a broken byte was taken out
  std::uint64_t resyncs = 0;         // ways back found after a gap or a late join
  std::uint64_t exchanges = 0;       // generation requests begun
  std::uint64_t exchanges_in_flight = 0;
  TextBudget text;  // that waits for the rest of it, over all connections
  std::array<std::uint64_t, static_cast<std::size_t>(ParseError::kCount)> parse_errors{};

  void count(ParseError error) { ++parse_errors[static_cast<std::size_t>(error)]; }
  std::uint64_t of(ParseError error) const { return parse_errors[static_cast<std::size_t>(error)]; }
};

}  // namespace rooflined::tap
