#include "metrics/export/http_engine.h"

#include <httplib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <optional>

namespace rooflined::metrics_export {

namespace {

// What httplib takes for a connection: the request head to read, and a string to write to.
class MemoryStream : public httplib::Stream {
 public:
  explicit MemoryStream(std::string_view head) : left_(head) {}

  bool is_readable() const override { return !left_.empty(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* into, size_t size) override {
    const std::size_t count = std::min(size, left_.size());
    std::memcpy(into, left_.data(), count);
    left_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    written_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  // Client addresses are not kept anywhere.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  // httplib refuses descriptors beyond select()'s set; here is none to compare.
  int socket() const override { return -1; }

  std::string take() { return std::move(written_); }

 private:
  std::string_view left_;
  std::string written_;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [lower](char x, char y) { return lower(x) == lower(y); });
}

// "q=0.5" among the parameters of a coding; 1 without one, 0 for anything that is no number.
double quality(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = parameters.substr(0, parameters.find(';'));
    parameters.remove_prefix(parameter.size() < parameters.size() ? parameter.size() + 1 : parameters.size());
    const std::string_view text = trimmed(parameter);
    if (text.size() < 2 || !equal_ignoring_case(text.substr(0, 2), "q=")) continue;
    double value = 0;
    std::from_chars(text.data() + 2, text.data() + text.size(), value);
    return value;
  }
  return 1;
}

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
  std::optional<double> gzip;
  std::optional<double> identity;
  std::optional<double> any;
  while (!accept_encoding.empty()) {
    const std::string_view element = accept_encoding.substr(0, accept_encoding.find(','));
    accept_encoding.remove_prefix(element.size() < accept_encoding.size() ? element.size() + 1 : element.size());
    const std::size_t semicolon = element.find(';');
    const std::string_view coding = trimmed(element.substr(0, semicolon));
    const double q = semicolon == std::string_view::npos ? 1 : quality(element.substr(semicolon + 1));
    if (equal_ignoring_case(coding, "gzip") || equal_ignoring_case(coding, "x-gzip")) gzip = q;
    if (equal_ignoring_case(coding, "identity")) identity = q;
    if (coding == "*") any = q;
  }
  const double gzip_quality = gzip.value_or(any.value_or(0));
  return gzip_quality > 0 && gzip_quality >= identity.value_or(0);
}

class HttpEngine::Server : private httplib::Server {
 public:
  explicit Server(HttpHandler handler) {
    // Everything is answered here: httplib's own routes are regular expressions, which recurse over the path.
    set_pre_routing_handler(
        [handler = std::move(handler)](const httplib::Request& request, httplib::Response& response) {
          HttpResponse made = handler({request.method, request.path, request.get_header_value("Host"),
                                       request.get_header_value("Authorization")});
          response.status = made.status;
          for (const auto& [name, value] : made.headers) response.set_header(name, value);
          response.body = std::move(made.body);
          response.set_header("Content-Type", made.content_type);
          return HandlerResponse::Handled;
        });
    set_exception_handler([](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
      response.status = 500;
      response.set_content("internal error\n", "text/plain; charset=utf-8");
    });
    // httplib promises ranges to HEAD, and there are none.
    set_post_routing_handler([](const httplib::Request&, httplib::Response& response) {
      response.headers.erase("Accept-Ranges");
      response.headers.erase("Keep-Alive");
    });
  }

  HttpReply answer(std::string_view head) {
    MemoryStream stream(head);
    bool closed = false;
    const auto prepare = [&closed](httplib::Request& request) { closed = prepare_request(request) || closed; };
    const bool done = process(*this, stream, closed, prepare);
    return {stream.take(), closed || !done};
  }

 private:
  // True if the connection must end with this request.
  static bool prepare_request(httplib::Request& request) {
    // httplib takes "gzip;q=0" for a wish and prefers brotli: say what we decided.
    const bool gzip = accepts_gzip(request.get_header_value("Accept-Encoding"));
    request.headers.erase("Accept-Encoding");
    if (gzip) request.set_header("Accept-Encoding", "gzip");
    request.ranges.clear();
    const bool has_body = request.has_header("Transfer-Encoding") ||
                          (request.has_header("Content-Length") && request.get_header_value("Content-Length") != "0");
    const bool closes = has_body || (request.method != "GET" && request.method != "HEAD");
    if (closes) {
      request.headers.erase("Connection");
      request.set_header("Connection", "close");
      request.headers.erase("Expect");  // the body is not wanted
    }
    return closes;
  }

  // 0.18 takes the addresses of both ends as arguments, 0.11 asks the stream.
  template <typename Base>
  static bool process(Base& server, httplib::Stream& stream, bool& closed,
                      const std::function<void(httplib::Request&)>& prepare) {
    if constexpr (requires { server.process_request(stream, false, closed, prepare); }) {
      return server.process_request(stream, false, closed, prepare);
    } else {
      return server.process_request(stream, std::string(), 0, std::string(), 0, false, closed, prepare);
    }
  }
};

HttpEngine::HttpEngine(HttpHandler handler) : server_(std::make_unique<Server>(std::move(handler))) {}

HttpEngine::~HttpEngine() = default;

HttpReply HttpEngine::answer(std::string_view head) {
  try {
    return server_->answer(head);
  } catch (const std::exception&) {
    return {"HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", true};
  }
}

}  // namespace rooflined::metrics_export
