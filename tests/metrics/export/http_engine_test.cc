// Goal: HTTP as a scraper and a browser speak it, without a socket: negotiation, HEAD, odd methods, bodies, broken
// heads.

#include "metrics/export/http_engine.h"
#include "tests/support/catch.h"

#include <stdexcept>
#include <string>

using namespace rooflined::metrics_export;

namespace {

HttpResponse long_text(const HttpRequest&) {
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = std::string(10'000, 'a');
  return response;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string body_of(const std::string& response) {
  return response.substr(response.find("\r\n\r\n") + 4);
}

}  // namespace

TEST_CASE("Accept-Encoding by its quality rules") {
  struct Row {
    const char* header;
    bool gzip;
  };
  for (const Row& row :
       {Row{"", false}, Row{"gzip", true}, Row{"GZIP", true}, Row{"x-gzip", true}, Row{"deflate, gzip;q=0.5", true},
        Row{"gzip;q=0", false}, Row{"gzip;q=0.0, *;q=1", false},
        Row{"gzip ; q = 0", true},  // blanks around = are not allowed: no quality
        Row{"*", true}, Row{"*;q=0", false}, Row{"identity", false}, Row{"gzip;q=0.5, identity;q=1", false},
        Row{"gzip;q=1, identity;q=0.5", true}, Row{"br", false}, Row{"notgzip", false}, Row{"gzip;q=nonsense", false},
        Row{",,;,gzip", true}}) {
    INFO(row.header);
    CHECK(accepts_gzip(row.header) == row.gzip);
  }
}

TEST_CASE("a GET is answered with its length, and the connection stays") {
  HttpEngine engine(long_text);
  const HttpReply reply = engine.answer("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(reply.bytes.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(contains(reply.bytes, "Content-Length: 10000\r\n"));
  CHECK(contains(reply.bytes, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  CHECK_FALSE(contains(reply.bytes, "Content-Encoding"));
  CHECK(body_of(reply.bytes).size() == 10'000);
  CHECK_FALSE(reply.close);
}

TEST_CASE("gzip when asked for, never anything else") {
  HttpEngine engine(long_text);
  const auto encoded = [&engine](const std::string& accept) {
    return engine.answer("GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: " + accept + "\r\n\r\n").bytes;
  };
  CHECK(contains(encoded("br, gzip"), "Content-Encoding: gzip\r\n"));
  CHECK(body_of(encoded("gzip")).size() < 200);
  CHECK(body_of(encoded("gzip")).starts_with("\x1f\x8b"));
  CHECK_FALSE(contains(encoded("br"), "Content-Encoding"));
  CHECK_FALSE(contains(encoded("gzip;q=0"), "Content-Encoding"));
}

TEST_CASE("E25: HEAD has the headers of GET and no body") {
  HttpEngine engine(long_text);
  const HttpReply reply = engine.answer("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(contains(reply.bytes, "Content-Length: 10000\r\n"));
  CHECK(body_of(reply.bytes).empty());
  CHECK_FALSE(contains(reply.bytes, "Accept-Ranges"));
}

TEST_CASE("a range is not served") {
  HttpEngine engine(long_text);
  const HttpReply reply = engine.answer("GET /metrics HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n");
  CHECK(reply.bytes.starts_with("HTTP/1.1 200"));
  CHECK(body_of(reply.bytes).size() == 10'000);
}

TEST_CASE("the end of the connection: asked for, HTTP/1.0, a body, another method") {
  HttpEngine engine(long_text);
  for (const char* head :
       {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", "DELETE / HTTP/1.1\r\n\r\n"}) {
    INFO(head);
    const HttpReply reply = engine.answer(head);
    CHECK(reply.close);
    CHECK(reply.bytes.starts_with("HTTP/1.1 200"));  // the handler decides on methods
    CHECK_FALSE(contains(reply.bytes, "100 Continue"));
  }
}

TEST_CASE("a head that is no HTTP gives 400 and no crash") {
  HttpEngine engine(long_text);
  for (const std::string& head :
       {std::string("\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("GET / HTTP/2\r\n\r\n"),
        std::string("FOO / HTTP/1.1\r\n\r\n"), std::string("\xff\xfe\x00 /\r\n\r\n", 9)}) {
    const HttpReply reply = engine.answer(head);
    CHECK((reply.bytes.empty() || reply.bytes.starts_with("HTTP/1.1 400")));
  }
}

TEST_CASE("the handler sees path without query, host and authorization") {
  HttpRequest seen;
  HttpEngine engine([&seen](const HttpRequest& request) {
    seen = request;
    return HttpResponse();
  });
  engine.answer("GET /a%20b?c=d#e HTTP/1.1\r\nHost: h:1\r\nAuthorization: Basic xyz\r\n\r\n");
  CHECK(seen.method == "GET");
  CHECK(seen.path == "/a b");
  CHECK(seen.host == "h:1");
  CHECK(seen.authorization == "Basic xyz");
}

TEST_CASE("an exception of the handler is a 500 without its text") {
  HttpEngine engine([](const HttpRequest&) -> HttpResponse { throw std::runtime_error("secret"); });
  const HttpReply reply = engine.answer("GET / HTTP/1.1\r\n\r\n");
  CHECK(reply.bytes.starts_with("HTTP/1.1 500"));
  CHECK_FALSE(contains(reply.bytes, "secret"));
}
