#include "tests/simulator/server.h"

#include "tests/simulator/balancer.h"
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
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>
#include <vector>

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
  Routes(const ServerOptions& options, const PacedReport& before)
      : options_(options),
        before_(before),
        facts_{options.model, options.engine.batch_max, unix_seconds(), options.version},
        dialect_(make_dialect(options.dialect)),
        balancer_(options.replicas, options.balance, options.engine.seed) {
    for (std::size_t i = 0; i < options.replicas; ++i) {
      EngineOptions engine = options.engine;
      engine.seed += i;
      engines_.push_back(std::make_unique<PacedEngine>(engine, *dialect_, options.frames));
    }
    http_.new_task_queue = [] { return new TaskThreads; };
    http_.set_tcp_nodelay(true);
    http_.set_keep_alive_max_count(100);
    http_.set_write_timeout(0, 0);
    http_.set_payload_max_length(kBodyBytesMax);
    if (!dialect_->server().empty()) http_.set_default_headers({{"Server", std::string(dialect_->server())}});
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

  void change(const Change& change) {
    const std::lock_guard lock(mutex_);
    apply(change, options_.engine);
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      EngineOptions engine = options_.engine;
      engine.seed += i;
      engines_[i]->change(engine, change.warm_up_seconds);
    }
  }

  PacedReport report() const {
    PacedReport sum = before_;
    for (const auto& engine : engines_) sum += engine->report();
    return sum;
  }

  void stop() {
    for (const auto& engine : engines_) engine->stop();
    // cpp-httplib forgets a stop() that comes before its loop runs.
    for (int i = 0; i < 1000 && !http_.is_running(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    http_.stop();
  }

 private:
  void add_routes() {
    for (const RoutePath& route : dialect_->routes()) add_generation(std::string(route.path), route.route);
    const auto add_body = [this](const std::string& path, auto make_body) {
      http_.Get(path, [make_body](const httplib::Request&, httplib::Response& response) {
        response.set_content(make_body(), kJson);
      });
    };
    for (const Page& page : dialect_->pages(facts_)) add_body(page.path, [body = page.body] { return body; });
    add_body("/health", [] { return std::string(R"({"status":"ok"})"); });
    add_body("/sim/truth", [this] {
      const PacedReport now = report();
      const std::lock_guard lock(mutex_);
      return truth_json(now, options_);
    });
  }

  void add_generation(const std::string& path, Route route) {
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
    generation->version = facts_.version;
    generation->created = unix_seconds();
    generation->cached_tokens = cached_tokens(parsed->prompt_tokens, options_.cached_share);
    if (!parsed->stream) return generate_whole(*generation, response);
    response.set_chunked_content_provider(
        std::string(stream_content_type(route)), [this, generation](std::size_t, httplib::DataSink& sink) {
          const WriteFrame write = [&sink](std::string_view bytes) { return sink.write(bytes.data(), bytes.size()); };
          if (serve(*generation, write) != ServeOutcome::kDone) return false;
          sink.done();
          return true;
        });
  }

  void generate_whole(Response& generation, httplib::Response& response) {
    switch (serve(generation, [](std::string_view) { return true; })) {
      case ServeOutcome::kDone:
        return response.set_content(dialect_->whole_body(generation), kJson);
      case ServeOutcome::kRefused:
        return answer_error(response, 503, "too many requests wait");
      case ServeOutcome::kLost:
      case ServeOutcome::kStopped:
        return answer_error(response, 503, "the server stops");
    }
  }

  ServeOutcome serve(Response& generation, const WriteFrame& write) {
    const std::size_t replica = balancer_.enter();
    const ServeOutcome outcome = engines_[replica]->serve(generation, write);
    balancer_.leave(replica);
    return outcome;
  }

  ServerOptions options_;  // its engine's part is guarded by mutex_
  PacedReport before_;
  ServerFacts facts_;
  std::unique_ptr<Dialect> dialect_;
  Balancer balancer_;
  std::vector<std::unique_ptr<PacedEngine>> engines_;
  std::mutex mutex_;
  // Not from 0 on: two servers would write the same texts.
  std::atomic<std::uint64_t> last_id_ = std::random_device()();
  int listener_ = -1;
  httplib::Server http_;
};

Server::Server(const ServerOptions& options, const PacedReport& before)
    : routes_(std::make_unique<Routes>(options, before)) {}
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
void Server::change(const Change& change) {
  routes_->change(change);
}
PacedReport Server::report() const {
  return routes_->report();
}

}  // namespace rooflined::simulator
