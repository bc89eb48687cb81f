#include "collectors/server/identify.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>

namespace rooflined::server {
namespace {

using AddAnswer = Status (*)(std::string_view, ServerIdentity&);

// What is asked besides /v1/models; in order, until one is answered.
struct Question {
  ServerFamily family;
  const char* path;
  AddAnswer add;
};
constexpr std::array<Question, 10> kQuestions = {{
    {ServerFamily::kLlamaCpp, "/props", add_props_answer},
    {ServerFamily::kUnknown, "/props", add_props_answer},  // a build without /v1/models, or a list behind a key
    {ServerFamily::kVllm, "/version", add_version_answer},
    {ServerFamily::kAphrodite, "/version", add_version_answer},
    {ServerFamily::kTensorRtLlm, "/version", add_version_answer},
    {ServerFamily::kOllama, "/api/version", add_version_answer},
    {ServerFamily::kKoboldCpp, "/api/extra/version", add_version_answer},
    {ServerFamily::kTgi, "/info", add_model_answer},
    {ServerFamily::kSglang, "/model_info", add_model_answer},
    {ServerFamily::kSglang, "/get_model_info", add_model_answer},  // its name before 2026
}};

// What else a family tells, likewise: the type of its KV cache, the models it has loaded.
constexpr std::array<Question, 5> kFurtherQuestions = {{
    {ServerFamily::kVllm, "/metrics", add_metrics_answer},
    {ServerFamily::kAphrodite, "/metrics", add_metrics_answer},
    {ServerFamily::kOllama, "/api/ps", add_running_answer},
    {ServerFamily::kSglang, "/server_info", add_arguments_answer},
    {ServerFamily::kSglang, "/get_server_info", add_arguments_answer},  // its name before 2026
}};

// Shuts a client's socket when the whole request takes too long: the library's own timeouts are per read.
class Deadline {
 public:
  Deadline(httplib::Client& client, std::chrono::milliseconds after)
      : thread_([this, &client, after](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          wake_.wait_for(lock, stop, after, [] { return false; });
          if (!stop.stop_requested()) client.stop();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses the others
};

std::string reason(httplib::Error error) {
  return httplib::to_string(error);
}

// Descriptions are of models that are there: nothing is loaded for them.
void describe_running_models(const Endpoint& endpoint, const IdentifyOptions& options, ServerIdentity& identity) {
  constexpr std::size_t kDescribedMax = 8;
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  for (const std::string& model : identity.running_models()) {
    if (identity.descriptions.size() == kDescribedMax) return;
    const std::string body = nlohmann::json{{"model", model}, {"name", model}}.dump(-1, ' ', false, kReplace);
    const Result<HttpAnswer> answer = http_ask(endpoint, "/api/show", body, options);
    if (!answer) return;
    if (answer->status == 200) identity.descriptions[model] = answer->body;
  }
}

}  // namespace

std::string address_text(const Endpoint& endpoint) {
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  const bool v4 = std::equal(kMapped.begin(), kMapped.end(), endpoint.address.begin());
  const void* from = endpoint.address.data() + (v4 ? kMapped.size() : 0);
  return ::inet_ntop(v4 ? AF_INET : AF_INET6, from, buffer.data(), buffer.size()) == nullptr ? "" : buffer.data();
}

bool accepts_connections(const Endpoint& endpoint, std::chrono::milliseconds within) {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;  // it cannot be known
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(endpoint.port);
  std::copy(endpoint.address.begin(), endpoint.address.end(), std::begin(address.sin6_addr.s6_addr));
  int error = 0;
  socklen_t size = sizeof(error);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    pollfd connected{fd, POLLOUT, 0};
    const bool waits = errno == EINPROGRESS;
    const bool decided = waits && ::poll(&connected, 1, static_cast<int>(within.count())) > 0;
    if (!decided || ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = ETIMEDOUT;
  }
  ::close(fd);
  return error == 0;
}

Result<HttpAnswer> http_get(const Endpoint& endpoint, const std::string& path, const IdentifyOptions& options) {
  return http_ask(endpoint, path, {}, options);
}

Result<HttpAnswer> http_ask(const Endpoint& endpoint, const std::string& path, const std::string& body,
                            const IdentifyOptions& options) {
  const std::string where = fmt::format("port {} {}", endpoint.port, path);
  try {
    httplib::Client client(address_text(endpoint), endpoint.port);
    client.set_connection_timeout(options.connect_timeout);
    client.set_read_timeout(options.read_timeout);
    client.set_write_timeout(options.read_timeout);
    client.set_follow_location(false);
    client.set_decompress(false);
    httplib::Request request;
    request.method = body.empty() ? "GET" : "POST";
    request.path = path;
    request.body = body;
    request.headers = {{"User-Agent", options.user_agent}, {"Accept-Encoding", "identity"}, {"Connection", "close"}};
    if (!body.empty()) request.headers.emplace("Content-Type", "application/json");
    if (!options.bearer_token.empty()) request.headers.emplace("Authorization", "Bearer " + options.bearer_token);
    HttpAnswer answer;
    bool too_long = false;
    request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
      too_long = answer.body.size() + size > options.body_bytes_max;
      if (!too_long) answer.body.append(data, size);
      return !too_long;
    };
    const Deadline deadline(client, options.request_timeout);
    const httplib::Result result = client.send(request);
    if (too_long)
      return Error{ErrorCode::kLimit, where, fmt::format("answers more than {} bytes", options.body_bytes_max)};
    if (!result) return Error{ErrorCode::kIo, where, reason(result.error())};
    answer.status = result->status;
    return answer;
  } catch (const std::exception& error) {  // the library's, on what a server sends
    return Error{ErrorCode::kIo, where, error.what()};
  }
}

Result<ServerIdentity> identify(const Endpoint& endpoint, ServerFamily hint, const IdentifyOptions& options) {
  ServerIdentity identity;
  bool answered = false;
  Error last{ErrorCode::kNotFound, fmt::format("port {}", endpoint.port), "answers none of our questions"};
  const auto ask = [&](const char* path, AddAnswer add) {
    const Result<HttpAnswer> answer = http_get(endpoint, path, options);
    if (!answer) {
      last = answer.error();
      return false;
    }
    if (answer->status != 200) {
      const bool denied = answer->status == 401 || answer->status == 403;
      last = {denied ? ErrorCode::kDenied : ErrorCode::kNotFound, fmt::format("port {} {}", endpoint.port, path),
              fmt::format("HTTP status {}", answer->status)};
      return false;
    }
    if (const Status status = add(answer->body, identity); !status) {
      last = status.error();
      return false;
    }
    answered = true;
    return true;
  };
  // A server that does not even take the connection is not asked again.
  if (!ask("/v1/models", add_models_answer) && last.code == ErrorCode::kIo) return last;
  if (identity.family == ServerFamily::kUnknown) identity.family = hint;
  const ServerFamily asked_as = identity.family;
  for (const Question& question : kQuestions) {
    if (question.family == asked_as && ask(question.path, question.add)) break;
  }
  if (!answered) return last;
  for (const Question& question : kFurtherQuestions) {
    if (question.family == asked_as && ask(question.path, question.add)) break;
  }
  if (asked_as == ServerFamily::kOllama) describe_running_models(endpoint, options, identity);
  return identity;
}

}  // namespace rooflined::server
