#include "tests/simulator/stream_client.h"

#include "tests/simulator/answer_reader.h"
#include "tests/simulator/request_body.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace rooflined::simulator {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSlowPause{100};
// The kernel doubles it, and takes no less than about 2 KiB.
constexpr int kSlowBufferBytes = 2048;
// A queue in front of a busy server may be long.
constexpr int kReadTimeoutSeconds = 600;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct RouteName {
  std::string_view path;
  Route route;
};
constexpr std::array<RouteName, 7> kRoutes = {{{"/v1/chat/completions", Route::kChat},
                                               {"/chat/completions", Route::kChat},
                                               {"/v1/completions", Route::kCompletions},
                                               {"/completion", Route::kNative},
                                               {"/completions", Route::kNative},
                                               {"/api/chat", Route::kOllamaChat},
                                               {"/api/generate", Route::kOllamaGenerate}}};

}  // namespace

Result<ClientOptions> client_options_for(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme))
    return Error{ErrorCode::kInvalid, url, "a URL such as http://127.0.0.1:8080 is needed"};
  ClientOptions options;
  const std::size_t slash = url.find('/', kScheme.size());
  options.origin = url.substr(0, slash);
  options.path = slash == std::string::npos || slash + 1 == url.size() ? kRoutes[0].path : url.substr(slash);
  if (options.origin.size() == kScheme.size()) return Error{ErrorCode::kInvalid, url, "a host is needed"};
  const auto known = std::ranges::find(kRoutes, options.path, &RouteName::path);
  if (known == kRoutes.end()) {
    return Error{ErrorCode::kInvalid, url, "not a generation route; /v1/chat/completions is one"};
  }
  options.route = known->route;
  return options;
}

StreamClient::StreamClient(const ClientOptions& options, const std::atomic<bool>& cut,
                           std::atomic<std::uint64_t>& tokens_seen)
    : options_(options),
      cut_(cut),
      tokens_seen_(tokens_seen),
      http_(std::make_unique<httplib::Client>(options.origin)) {
  http_->set_keep_alive(true);
  http_->set_tcp_nodelay(true);
  http_->set_read_timeout(kReadTimeoutSeconds, 0);
}

StreamClient::~StreamClient() = default;

void StreamClient::abandon() {
  http_->stop();
}

StreamResult StreamClient::run(std::uint64_t number) {
  return run(number, {options_.prompt_tokens, options_.output_tokens, options_.stream, 0, false});
}

StreamResult StreamClient::run(std::uint64_t number, const Manner& manner) {
  StreamResult result;
  AnswerReader answer(manner.stream);
  int status = 0;

  httplib::Request request;
  request.method = "POST";
  request.path = options_.path;
  request.headers = {{"Content-Type", "application/json"}};
  request.body = request_body(
      {options_.route, manner.stream, options_.ask_usage, manner.prompt_tokens, manner.output_tokens}, number);
  if (manner.slow) {
    http_->stop();  // the buffer is a new connection's
    http_->set_socket_options(
        [](socket_t socket) { setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kSlowBufferBytes, sizeof kSlowBufferBytes); });
  }
  const Clock::time_point begun = Clock::now();
  Clock::time_point token_at;
  request.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    return true;
  };
  request.content_receiver = [&](const char* bytes, std::size_t count, std::uint64_t, std::uint64_t) {
    const std::uint64_t tokens = answer.read({bytes, count});
    if (tokens > 0) {
      const Clock::time_point now = Clock::now();
      if (answer.tokens() == tokens) {
        result.ttft_seconds = seconds_between(begun, now);
      } else {
        result.intervals_seconds.push_back(seconds_between(token_at, now) / static_cast<double>(tokens));
        result.intervals_seconds.resize(result.intervals_seconds.size() + tokens - 1, result.intervals_seconds.back());
      }
      token_at = now;
      tokens_seen_ += tokens;
    }
    if (manner.slow) std::this_thread::sleep_for(kSlowPause);
    return !cut_ && (manner.leave_after == 0 || answer.tokens() < manner.leave_after);
  };
  const httplib::Result sent = http_->send(request);
  result.request_seconds = seconds_between(begun, Clock::now());
  const bool complete = answer.finish();
  result.output_tokens = answer.total_tokens().value_or(answer.tokens());
  result.prompt_tokens = answer.prompt_tokens().value_or(manner.prompt_tokens);
  if (!sent) result.failure = httplib::to_string(sent.error());
  return judge(std::move(result), sent.error() == httplib::Error::Success, status, complete, manner);
}

StreamResult StreamClient::judge(StreamResult result, bool sent, int status, bool complete,
                                 const Manner& manner) const {
  if (sent && status == 200 && complete) {
    result.outcome = StreamOutcome::kCompleted;
    if (!manner.stream) tokens_seen_ += result.output_tokens;
  } else if (cut_) {
    result.outcome = StreamOutcome::kCut;
  } else if (manner.leave_after > 0 && result.output_tokens >= manner.leave_after) {
    result.outcome = StreamOutcome::kLeft;
  } else if (sent) {
    result.failure = status == 200 ? "answer without its end" : fmt::format("HTTP status {}", status);
  }
  return result;
}

}  // namespace rooflined::simulator
