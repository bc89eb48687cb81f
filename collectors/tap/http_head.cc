#include "collectors/tap/http_head.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace rooflined::tap {
namespace {

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool equals_nocase(std::string_view text, std::string_view lowercase) {
  return text.size() == lowercase.size() &&
         std::equal(text.begin(), text.end(), lowercase.begin(), [](char a, char b) { return lower(a) == b; });
}

bool contains_nocase(std::string_view text, std::string_view lowercase) {
  return std::search(text.begin(), text.end(), lowercase.begin(), lowercase.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// Takes the next line off `rest`, without its end.
std::string_view next_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::string_view last_of_list(std::string_view list) {
  const std::size_t comma = list.rfind(',');
  return trim(comma == std::string_view::npos ? list : list.substr(comma + 1));
}

std::optional<std::uint64_t> number_of(std::string_view value) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (value.empty() || error != std::errc{} || end != value.data() + value.size()) return {};
  return number;
}

ContentCoding coding_of(std::string_view value) {
  if (value.empty() || equals_nocase(value, "identity")) return ContentCoding::kIdentity;
  if (equals_nocase(value, "gzip") || equals_nocase(value, "x-gzip")) return ContentCoding::kGzip;
  if (equals_nocase(value, "deflate")) return ContentCoding::kDeflate;
  return ContentCoding::kOther;
}

void read_length(std::string_view value, HeadFields& fields) {
  // A list of equal numbers counts as one (RFC 9112 §6.3); proxies have sent it.
  while (true) {
    const std::size_t comma = value.find(',');
    const std::string_view item = trim(value.substr(0, comma));
    const auto length = number_of(item);
    if (!length || (fields.content_length && *fields.content_length != *length)) {
      fields.contradictory = true;
    } else {
      fields.content_length = length;
    }
    if (comma == std::string_view::npos) return;
    value.remove_prefix(comma + 1);
  }
}

void read_shared_field(std::string_view name, std::string_view value, HeadFields& fields) {
  if (equals_nocase(name, "content-length")) {
    read_length(value, fields);
  } else if (equals_nocase(name, "transfer-encoding")) {
    fields.transfer_encoding = true;
    fields.chunked = equals_nocase(last_of_list(value), "chunked");
    if (contains_nocase(value, "gzip")) fields.coding = ContentCoding::kGzip;
    if (contains_nocase(value, "deflate")) fields.coding = ContentCoding::kDeflate;
  } else if (equals_nocase(name, "content-encoding")) {
    // Two codings, one upon the other, are in one field or in two.
    const ContentCoding coding = coding_of(value);
    const bool second = coding != ContentCoding::kIdentity && fields.coding != ContentCoding::kIdentity;
    if (coding != ContentCoding::kIdentity) fields.coding = second ? ContentCoding::kOther : coding;
  }
}

MediaType media_type_of(std::string_view value) {
  const std::string_view type = trim(value.substr(0, value.find(';')));
  if (equals_nocase(type, "text/event-stream")) return MediaType::kEventStream;
  if (equals_nocase(type, "application/json")) return MediaType::kJson;
  constexpr std::array<std::string_view, 5> kLines = {"application/x-ndjson", "application/ndjson", "application/jsonl",
                                                      "application/x-jsonlines", "application/stream+json"};
  const bool lines = std::any_of(kLines.begin(), kLines.end(), [&](auto name) { return equals_nocase(type, name); });
  return lines ? MediaType::kNdjson : MediaType::kOther;
}

template <typename OnField>
void for_each_field(std::string_view rest, OnField on_field) {
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    if (line.empty()) return;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    on_field(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
  }
}

}  // namespace

bool looks_like_request_line(std::string_view line) {
  constexpr std::array<std::string_view, 8> kMethods = {"POST ",  "GET ",    "HEAD ",    "PUT ",
                                                        "PATCH ", "DELETE ", "OPTIONS ", "CONNECT "};
  return std::any_of(kMethods.begin(), kMethods.end(), [&](std::string_view method) {
    if (!line.starts_with(method) || line.size() == method.size()) return false;
    const char first = line[method.size()];
    return first == '/' || first == 'h' || first == '*' || method == "CONNECT ";
  });
}

bool looks_like_status_line(std::string_view line) {
  return line.size() >= 12 && line.starts_with("HTTP/1.") && is_digit(line[7]) && line[8] == ' ' && is_digit(line[9]) &&
         is_digit(line[10]) && is_digit(line[11]) &&
         (line.size() == 12 || line[12] == ' ' || line[12] == '\r' || line[12] == '\n');
}

// Content types 20 to 23, then major version 3.
bool is_tls_content_type(char byte) {
  return byte >= 0x14 && byte <= 0x17;
}

bool looks_like_tls(std::string_view bytes) {
  return bytes.size() >= 3 && is_tls_content_type(bytes[0]) && bytes[1] == 3 &&
         static_cast<unsigned char>(bytes[2]) <= 4;
}

std::optional<RequestHead> parse_request_head(std::string_view head) {
  const std::string_view line = next_line(head);
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last <= first || !line.substr(last + 1).starts_with("HTTP/1.")) return {};
  RequestHead request;
  request.method = line.substr(0, first);
  request.path = trim(line.substr(first + 1, last - first - 1));
  request.path = request.path.substr(0, request.path.find_first_of("?#"));
  if (request.path.size() > 1 && request.path.back() == '/') request.path.remove_suffix(1);
  for_each_field(head, [&](auto name, auto value) {
    read_shared_field(name, value, request.fields);
    if (equals_nocase(name, "expect")) request.expects_continue = equals_nocase(value, "100-continue");
  });
  return request;
}

std::optional<ResponseHead> parse_response_head(std::string_view head) {
  const std::string_view line = next_line(head);
  if (!looks_like_status_line(line)) return {};
  ResponseHead response;
  response.status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  for_each_field(head, [&](auto name, auto value) {
    read_shared_field(name, value, response.fields);
    if (equals_nocase(name, "content-type")) response.media_type = media_type_of(value);
    if (equals_nocase(name, "server")) response.server = value;
    if (equals_nocase(name, "x-compute-type")) response.compute_type_header = true;
    if (equals_nocase(name, "x-generated-tokens")) response.generated_tokens = number_of(value);
    if (equals_nocase(name, "x-prompt-tokens")) response.prompt_tokens = number_of(value);
    if (equals_nocase(name, "upgrade")) response.http2_upgrade = contains_nocase(value, "h2c");
  });
  return response;
}

std::optional<std::uint64_t> parse_chunk_size(std::string_view line) {
  line = trim(line);
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
  if (error != std::errc{} || end == line.data()) return {};
  // What may follow: white space, then an extension (RFC 9112 §7.1.1).
  const std::string_view rest = trim(line.substr(static_cast<std::size_t>(end - line.data())));
  if (!rest.empty() && rest.front() != ';') return {};
  return size;
}

}  // namespace rooflined::tap
