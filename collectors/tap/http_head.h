// Reads the head of an HTTP/1.x message: the start line and the few fields that matter here.
//
// Lines may end in LF or CRLF, names in any case. Nothing is copied: views point into the head that was passed in.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rooflined::tap {

enum class ContentCoding : std::uint8_t { kIdentity, kGzip, kDeflate, kOther };
enum class MediaType : std::uint8_t { kOther, kEventStream, kNdjson, kJson };

// Fields that requests and responses share.
struct HeadFields {
  std::optional<std::uint64_t> content_length;
  bool transfer_encoding = false;  // present at all: Content-Length does not count then (RFC 9112 §6.3)
  bool chunked = false;            // and its last coding is chunked
  ContentCoding coding = ContentCoding::kIdentity;
  bool contradictory = false;  // two lengths that differ, or a length that is no number
};

struct RequestHead {
  std::string_view method;
  std::string_view path;          // without query and fragment, and without a trailing slash
  bool expects_continue = false;  // it may leave its body out, if it is refused
  HeadFields fields;
};

struct ResponseHead {
  int status = 0;
  HeadFields fields;
  MediaType media_type = MediaType::kOther;
  std::string_view server;           // value of `Server`, empty where absent
  bool compute_type_header = false;  // `x-compute-type`: only TGI sends it
  bool http2_upgrade = false;        // `Upgrade: h2c`
  // TGI's exact totals of a whole answer: `x-generated-tokens`, `x-prompt-tokens`.
  std::optional<std::uint64_t> generated_tokens;
  std::optional<std::uint64_t> prompt_tokens;
};

// `head` ends with its blank line, or before it. nullopt: no such head.
std::optional<RequestHead> parse_request_head(std::string_view head);
std::optional<ResponseHead> parse_response_head(std::string_view head);

// Whether a line could be the first of a request or a response. Only its first bytes are needed: 48 are plenty.
bool looks_like_request_line(std::string_view line);
bool looks_like_status_line(std::string_view line);

// The first byte of a TLS record, and its first three (RFC 8446 §5.1).
bool is_tls_content_type(char byte);
bool looks_like_tls(std::string_view bytes);

// The size in a chunk header such as `1f;ext="x"`, without its line end. nullopt: no chunk header.
std::optional<std::uint64_t> parse_chunk_size(std::string_view line);

}  // namespace rooflined::tap
