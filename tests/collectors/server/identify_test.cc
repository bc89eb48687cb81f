// Asks a small local server: sound, closed behind a key, broken, endless, slow, absent.

#include "collectors/server/identify.h"
#include "tests/support/catch.h"
#include "tests/support/containing.h"

#include <httplib.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace rooflined;
using namespace rooflined::server;
using rooflined::test::containing;

namespace {

using namespace std::chrono_literals;

class LocalServer {
 public:
  LocalServer() {
    // Before the answer: a client may look at the list as soon as it has that.
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response&) {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request.path);
      user_agent_ = request.get_header_value("User-Agent");
      authorization_ = request.get_header_value("Authorization");
      return httplib::Server::HandlerResponse::Unhandled;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    REQUIRE(port_ > 0);
  }
  ~LocalServer() {
    released_ = true;
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  void answer(const std::string& path, const std::string& body, int status = 200) {
    server_.Get(path, [body, status](const httplib::Request&, httplib::Response& response) {
      response.status = status;
      response.set_content(body, "application/json");
    });
  }
  // The same to a POST; what was sent is kept.
  void answer_post(const std::string& path, const std::string& body) {
    server_.Post(path, [this, body](const httplib::Request& request, httplib::Response& response) {
      const std::lock_guard lock(mutex_);
      sent_ = request.body;
      response.set_content(body, "application/json");
    });
  }
  // Sends one byte after the other until the test is over.
  void trickle(const std::string& path) {
    server_.Get(path, [this](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("application/json", [this](std::size_t, httplib::DataSink& sink) {
        std::this_thread::sleep_for(1ms);
        return !released_ && sink.write(" ", 1);
      });
    });
  }
  void start() {
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  Endpoint endpoint() const {
    Endpoint endpoint;
    endpoint.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
    endpoint.port = static_cast<std::uint16_t>(port_);
    return endpoint;
  }
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::string sent() {
    const std::lock_guard lock(mutex_);
    return sent_;
  }
  std::string user_agent() {
    const std::lock_guard lock(mutex_);
    return user_agent_;
  }
  std::string authorization() {
    const std::lock_guard lock(mutex_);
    return authorization_;
  }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::atomic<bool> released_ = false;
  std::mutex mutex_;
  std::vector<std::string> asked_;
  std::string sent_;
  std::string user_agent_;
  std::string authorization_;
};

constexpr const char* kModels = R"({"data":[{"id":"/m/x.gguf","owned_by":"llamacpp"}]})";
constexpr const char* kProps = R"({"model_path":"/m/x.gguf","build_info":"b1-x","total_slots":2})";

IdentifyOptions options() {
  IdentifyOptions options;
  options.user_agent = "rooflined/test";
  return options;
}

}  // namespace

TEST_CASE("a llama.cpp server is asked two questions") {
  LocalServer server;
  server.answer("/v1/models", kModels);
  server.answer("/props", kProps);
  server.start();
  const auto identity = identify(server.endpoint(), ServerFamily::kUnknown, options());
  REQUIRE(identity.ok());
  CHECK(identity->family == ServerFamily::kLlamaCpp);
  CHECK(identity->version == "b1-x");
  CHECK(identity->model_path == "/m/x.gguf");
  CHECK(server.asked() == std::vector<std::string>{"/v1/models", "/props"});
  CHECK(server.user_agent() == "rooflined/test");
  CHECK(server.authorization().empty());
}

TEST_CASE("the server's own word goes before the hint, and its family's route is asked") {
  LocalServer server;
  server.answer("/v1/models", R"({"data":[{"id":"q","owned_by":"vllm"}]})");
  server.answer("/version", R"({"version":"0.9"})");
  server.start();
  IdentifyOptions with_key = options();
  with_key.bearer_token = "secret";
  const auto identity = identify(server.endpoint(), ServerFamily::kLlamaCpp, with_key);
  REQUIRE(identity.ok());
  CHECK(identity->family == ServerFamily::kVllm);
  CHECK(identity->version == "0.9");
  CHECK(server.asked() == std::vector<std::string>{"/v1/models", "/version", "/metrics"});
  CHECK(server.authorization() == "Bearer secret");
}

TEST_CASE("Ollama is asked which model is loaded, and what that one is") {
  LocalServer server;
  server.answer("/v1/models", R"({"data":[{"id":"a:latest","owned_by":"library"},{"id":"b:latest"}]})");
  server.answer("/api/version", R"({"version":"0.12.1"})");
  server.answer("/api/ps", R"({"models":[{"name":"b:latest","model":"b:latest"}]})");
  server.answer_post("/api/show", R"({"model_info":{"general.architecture":"llama"}})");
  server.start();
  const auto identity = identify(server.endpoint(), ServerFamily::kUnknown, options());
  REQUIRE(identity.ok());
  CHECK(identity->version == "0.12.1");
  CHECK(server.asked() == std::vector<std::string>{"/v1/models", "/api/version", "/api/ps", "/api/show"});
  CHECK(server.sent() == R"({"model":"b:latest","name":"b:latest"})");
  CHECK(identity->descriptions.at("b:latest") == R"({"model_info":{"general.architecture":"llama"}})");
}

TEST_CASE("of several models that Ollama has loaded each is described, and no other") {
  LocalServer server;
  server.answer("/v1/models", R"({"data":[{"id":"a:latest","owned_by":"library"},{"id":"b:latest"}]})");
  server.answer("/api/ps", R"({"models":[{"name":"a:latest"},{"name":"b:latest"}]})");
  server.answer_post("/api/show", R"({"model_info":{}})");
  server.start();
  const auto identity = identify(server.endpoint(), ServerFamily::kUnknown, options());
  REQUIRE(identity.ok());
  CHECK(identity->descriptions.size() == 2);
  CHECK(identity->descriptions.contains("a:latest"));
  CHECK(server.asked() == std::vector<std::string>{"/v1/models", "/api/version", "/api/ps", "/api/show", "/api/show"});
}

TEST_CASE("the hint stands where the list says nothing; an older route is tried second") {
  LocalServer server;
  server.answer("/v1/models", R"({"data":[{"id":"q","owned_by":"me"}]})");
  server.answer("/get_model_info", R"({"model_path":"/w"})");
  server.start();
  const auto identity = identify(server.endpoint(), ServerFamily::kSglang, options());
  REQUIRE(identity.ok());
  CHECK(identity->model_path == "/w");
  CHECK(server.asked() ==
        std::vector<std::string>{"/v1/models", "/model_info", "/get_model_info", "/server_info", "/get_server_info"});
}

TEST_CASE("what is behind a key stays unknown, the rest is used") {
  LocalServer server;
  server.answer("/v1/models", kModels);
  server.answer("/props", "{}", 401);
  server.start();
  const auto identity = identify(server.endpoint(), ServerFamily::kUnknown, options());
  REQUIRE(identity.ok());
  CHECK(identity->family == ServerFamily::kLlamaCpp);
  CHECK(identity->model_path.empty());
}

TEST_CASE("everything behind a key") {
  LocalServer server;
  server.answer("/v1/models", "{}", 401);
  server.answer("/props", "{}", 401);
  server.start();
  const auto identity = identify(server.endpoint(), ServerFamily::kUnknown, options());
  REQUIRE_FALSE(identity.ok());
  CHECK(identity.error().code == ErrorCode::kDenied);
  CHECK(identity.error().message() == containing("401"));
}

TEST_CASE("a server that knows no such route, or answers no JSON") {
  LocalServer server;
  server.answer("/v1/models", "<html>");
  server.start();
  const auto identity = identify(server.endpoint(), ServerFamily::kUnknown, options());
  REQUIRE_FALSE(identity.ok());
  CHECK(identity.error().message() == containing("404"));
}

TEST_CASE("an answer without end is refused") {
  LocalServer server;
  server.answer("/v1/models", std::string(2 * 1024 * 1024, ' '));
  server.start();
  const auto answer = http_get(server.endpoint(), "/v1/models", options());
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().code == ErrorCode::kLimit);
}

TEST_CASE("a server that trickles is given up on in time, one that is silent too") {
  LocalServer server;
  server.trickle("/v1/models");
  server.start();
  IdentifyOptions hurried = options();
  hurried.request_timeout = 100ms;
  const auto answer = http_get(server.endpoint(), "/v1/models", hurried);
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().code == ErrorCode::kIo);

  // A listener whose queue takes the connection and whose process never reads it.
  httplib::Server silent;
  const int port = silent.bind_to_any_port("127.0.0.1");
  Endpoint endpoint = server.endpoint();
  endpoint.port = static_cast<std::uint16_t>(port);
  hurried.read_timeout = 50ms;
  CHECK_FALSE(identify(endpoint, ServerFamily::kUnknown, hurried).ok());
}

TEST_CASE("nobody there") {
  Endpoint endpoint;
  {
    LocalServer server;
    endpoint = server.endpoint();
    server.start();
  }
  const auto identity = identify(endpoint, ServerFamily::kUnknown, options());
  REQUIRE_FALSE(identity.ok());
  CHECK(identity.error().code == ErrorCode::kIo);
}

TEST_CASE("addresses in text") {
  Endpoint endpoint;
  endpoint.address[15] = 1;
  CHECK(address_text(endpoint) == "::1");
  endpoint.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 7};
  CHECK(address_text(endpoint) == "10.0.0.7");
}
