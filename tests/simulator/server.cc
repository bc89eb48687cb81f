#include "tests/simulator/server.h"

#include "tests/simulator/paced_engine.h"
#include "tests/simulator/task_threads.h"
#include "tests/simulator/truth_json.h"

#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace rooflined::simulator {
namespace {

constexpr std::size_t kBodyBytesMax = 16 * kMiB;
// cpp-httplib's own backlog of 5 loses the connections of a crowd that comes at once, for a second each.
constexpr int kListenBacklog = 1024;
constexpr const char* kJson = "application/json; charset=utf-8";

std::int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

void answer_error(httplib::Response& response, int status, std::string_view message) {
  const nlohmann::json error = {{"code", status}, {"message", message}, {"type", "invalid_request_error"}};
  response.status = status;
  response.set_content(nlohmann::json{{"error", error}}.dump(), kJson);
}

}  // namespace

class Server::Routes {
 public:
  explicit Routes(const ServerOptions& options)
      : facts_{options.model, options.engine.batch_max, unix_seconds()},
        dialect_(make_dialect(options.dialect)),
        engine_(options.engine, *dialect_),
        options_(options.engine) {
    http_.new_task_queue = [] { return new TaskThreads; };
    http_.set_tcp_nodelay(true);
    http_.set_keep_alive_max_count(100);
    http_.set_write_timeout(0, 0);
    http_.set_payload_max_length(kBodyBytesMax);
    http_.set_default_headers({{"Server", std::string(dialect_->server())}});
    // By default cpp-httplib sets SO_REUSEPORT, and a second server would take half of the requests without a word.
    http_.set_socket_options([this](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      listener_ = socket;
    });
    add_routes();
  }

  Result<std::uint16_t> bind(const std::string& host, std::uint16_t port) {
    errno = 0;
    const int bound = port != 0 ? (http_.bind_to_port(host, port) ? port : -1) : http_.bind_to_any_port(host);
    if (bound < 0) {
      const char* reason = errno != 0 ? std::strerror(errno) : "no such address";
      return Error{ErrorCode::kBusy, fmt::format("{}:{}", host, port), fmt::format("cannot listen: {}", reason)};
    }
    ::listen(listener_, kListenBacklog);
    return static_cast<std::uint16_t>(bound);
  }

  void run() { http_.listen_after_bind(); }

  void stop() {
    engine_.stop();
    // cpp-httplib forgets a stop() that comes before its loop runs.
    for (int i = 0; i < 1000 && !http_.is_running(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    http_.stop();
  }

 private:
  void add_routes() {
    add_generation("/v1/chat/completions", Route::kChat);
    add_generation("/v1/completions", Route::kCompletions);
    const auto add_body = [this](const char* path, auto make_body) {
      http_.Get(path, [make_body](const httplib::Request&, httplib::Response& response) {
        response.set_content(make_body(), kJson);
      });
    };
    add_body("/v1/models", [this] { return dialect_->models_body(facts_); });
    add_body("/health", [] { return std::string(R"({"status":"ok"})"); });
    add_body("/sim/truth", [this] { return truth_json(engine_.report(), options_, facts_.model.name); });
    if (!dialect_->has_native_routes()) return;
    add_generation("/chat/completions", Route::kChat);
    add_generation("/completion", Route::kNative);
    add_body("/props", [this] { return dialect_->props_body(facts_); });
  }

  void add_generation(const char* path, Route route) {
    http_.Post(path, [this, route](const httplib::Request& request, httplib::Response& response) {
      generate(route, request, response);
    });
  }

  void generate(Route route, const httplib::Request& request, httplib::Response& response) {
    const auto parsed = read_request(route, request.body);
    if (!parsed) return answer_error(response, 400, parsed.error().message());
    auto generation = std::make_shared<Response>();  // shared: std::function asks for a copyable owner
    generation->request = *parsed;
    generation->id = ++last_id_;
    generation->model = facts_.model.name;
    generation->created = unix_seconds();
    if (!parsed->stream) return generate_whole(*generation, response);
    response.set_chunked_content_provider(
        "text/event-stream", [this, generation](std::size_t, httplib::DataSink& sink) {
          const WriteFrame write = [&sink](std::string_view bytes) { return sink.write(bytes.data(), bytes.size()); };
          if (engine_.serve(*generation, write) != ServeOutcome::kDone) return false;
          sink.done();
          return true;
        });
  }

  void generate_whole(Response& generation, httplib::Response& response) {
    switch (engine_.serve(generation, [](std::string_view) { return true; })) {
      case ServeOutcome::kDone:
        return response.set_content(dialect_->whole_body(generation), kJson);
      case ServeOutcome::kRefused:
        return answer_error(response, 503, "too many requests wait");
      case ServeOutcome::kLost:
      case ServeOutcome::kStopped:
        return answer_error(response, 503, "the server stops");
    }
  }

  ServerFacts facts_;
  std::unique_ptr<Dialect> dialect_;
  PacedEngine engine_;
  EngineOptions options_;
  std::atomic<std::uint64_t> last_id_ = 0;
  int listener_ = -1;
  httplib::Server http_;
};

Server::Server(const ServerOptions& options) : routes_(std::make_unique<Routes>(options)) {}
Server::~Server() = default;

Result<std::uint16_t> Server::bind(const std::string& host, std::uint16_t port) {
  return routes_->bind(host, port);
}
void Server::run() {
  routes_->run();
}
void Server::stop() {
  routes_->stop();
}

}  // namespace rooflined::simulator
