#include "collectors/tap/http_head.h"

#include "tests/support/catch.h"

#include <string_view>
#include <vector>

namespace rooflined::tap {

TEST_CASE("request heads") {
  const auto head = parse_request_head(
      "POST /a/b/?q=1#f HTTP/1.1\r\nHOST: x\r\nContent-length :  12 \r\ntransfer-encoding: gzip , Chunked\r\n\r\n");
  REQUIRE(head);
  CHECK(head->method == "POST");
  CHECK(head->path == "/a/b");
  CHECK(head->fields.content_length == 12);
  CHECK(head->fields.transfer_encoding);
  CHECK(head->fields.chunked);
  CHECK(head->fields.coding == ContentCoding::kGzip);
  CHECK(parse_request_head("GET / HTTP/1.0\n\n")->path == "/");
  CHECK_FALSE(parse_request_head("GET /\r\n\r\n"));
  CHECK_FALSE(parse_request_head("GET / HTTP/2.0\r\n\r\n"));
  CHECK_FALSE(parse_request_head(""));
}

TEST_CASE("response heads") {
  const auto head = parse_response_head(
      "HTTP/1.1 206 Partly\r\nServer: llama.cpp\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\nX-Compute-Type: "
      "gpu\r\n"
      "Content-Encoding: br\r\n\r\n");
  REQUIRE(head);
  CHECK(head->status == 206);
  CHECK(head->server == "llama.cpp");
  CHECK(head->media_type == MediaType::kEventStream);
  CHECK(head->compute_type_header);
  CHECK(head->fields.coding == ContentCoding::kOther);
  CHECK(parse_response_head("HTTP/1.0 200\r\n\r\n")->status == 200);
  CHECK(parse_response_head("HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n")->media_type ==
        MediaType::kNdjson);
  CHECK_FALSE(parse_response_head("HTTP/1.1 20 OK\r\n\r\n"));
  CHECK_FALSE(parse_response_head("HTTP/2 200 OK\r\n\r\n"));
  CHECK_FALSE(parse_response_head("ICY 200 OK\r\n\r\n"));
}

TEST_CASE("lengths that contradict each other") {
  struct Row {
    std::string_view fields;
    bool contradictory;
  };
  const std::vector<Row> rows = {
      {"Content-Length: 5\r\n", false},
      {"Content-Length: 5, 5\r\n", false},
      {"Content-Length: 5\r\nContent-Length: 5\r\n", false},
      {"Content-Length: 5\r\nContent-Length: 6\r\n", true},
      {"Content-Length: -5\r\n", true},
      {"Content-Length: 5x\r\n", true},
      {"Content-Length:\r\n", true},
      {"Content-Length: 99999999999999999999999\r\n", true},
  };
  for (const Row& row : rows) {
    INFO(row.fields);
    const auto head = parse_response_head(std::string("HTTP/1.1 200 OK\r\n") + std::string(row.fields) + "\r\n");
    REQUIRE(head);
    CHECK(head->fields.contradictory == row.contradictory);
  }
}

TEST_CASE("chunk sizes") {
  struct Row {
    std::string_view line;
    std::int64_t size;  // -1: none
  };
  const std::vector<Row> rows = {
      {"1f", 31},   {"1F", 31},    {"000", 0}, {"a3;ieof=1", 0xa3}, {"a3 ; x=\"a\\\"b\"", 0xa3},
      {" a ", 10},  {"0;last", 0}, {"", -1},   {"g", -1},           {"-1", -1},
      {"0x10", -1}, {"a b", -1},   {";a", -1}, {"data: 1", -1},     {"12345678901234567", -1},
  };
  for (const Row& row : rows) {
    INFO(row.line);
    const auto size = parse_chunk_size(row.line);
    CHECK((size ? static_cast<std::int64_t>(*size) : -1) == row.size);
  }
}

TEST_CASE("start lines are known by their first bytes") {
  CHECK(looks_like_status_line("HTTP/1.1 200 OK"));
  CHECK(looks_like_status_line("HTTP/1.0 404\r\n"));
  CHECK_FALSE(looks_like_status_line("HTTP/1.1 200x"));
  CHECK_FALSE(looks_like_status_line("HTTP/1.1 "));
  CHECK_FALSE(looks_like_status_line("HTTP/2 200 OK"));
  CHECK(looks_like_request_line("POST /v1/chat"));
  CHECK(looks_like_request_line("OPTIONS *"));
  CHECK_FALSE(looks_like_request_line("POST "));
  CHECK_FALSE(looks_like_request_line("POSTED /"));
  CHECK_FALSE(looks_like_request_line("post /"));
}

}  // namespace rooflined::tap
