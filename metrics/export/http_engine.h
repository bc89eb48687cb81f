// From the bytes of one request head to the bytes of its response, by cpp-httplib: it parses and writes HTTP/1.1, it
// compresses, and it never sees a socket. The server in metrics_server.h moves the bytes, so that no client can hold a
// thread by being slow.
//
// Bodies of requests are not read: such a connection is closed after its response. Thread rule: one thread at a time.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rooflined::metrics_export {

struct HttpRequest {
  std::string method;
  std::string path;  // decoded, without the query
  std::string host;  // the header, empty where there is none
  std::string authorization;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpReply {
  std::string bytes;
  bool close = false;  // the connection ends after these bytes
};

// Whether a response may be compressed with gzip, by the quality rules of RFC 9110 §12.5.3.
bool accepts_gzip(std::string_view accept_encoding);

class HttpEngine {
 public:
  explicit HttpEngine(HttpHandler handler);
  ~HttpEngine();
  HttpEngine(const HttpEngine&) = delete;
  HttpEngine& operator=(const HttpEngine&) = delete;

  // `head`: request line and header fields, the empty line included. Never throws; an exception of the handler is a
  // 500.
  HttpReply answer(std::string_view head);

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace rooflined::metrics_export
