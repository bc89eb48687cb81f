#include "collectors/tap/http_counters.h"

namespace rooflined::tap {

std::string_view parse_error_name(ParseError error) {
  switch (error) {
    case ParseError::kTls:
      return "tls";
    case ParseError::kHttp2:
      return "http2";
    case ParseError::kNotHttp:
      return "not_http";
    case ParseError::kHead:
      return "head";
    case ParseError::kHeadTooLong:
      return "head_too_long";
    case ParseError::kChunk:
      return "chunk";
    case ParseError::kEncoded:
      return "encoded";
    case ParseError::kJson:
      return "json";
    case ParseError::kFrameTooLong:
      return "frame_too_long";
    case ParseError::kDocumentTooLong:
      return "document_too_long";
    case ParseError::kRequestTooLong:
      return "request_too_long";
    case ParseError::kTooManyRequests:
      return "too_many_requests";
    case ParseError::kTooManySequences:
      return "too_many_sequences";
    case ParseError::kImplausible:
      return "implausible";
    case ParseError::kHiddenChoices:
      return "hidden_choices";
    case ParseError::kCount:
      break;
  }
  return "unknown";
}

}  // namespace rooflined::tap
