#include "tests/simulator/stream_client.h"

#include "tests/simulator/answer_reader.h"
#include "tests/simulator/openai_frames.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <utility>

namespace rooflined::simulator {
namespace {

using Clock = std::chrono::steady_clock;

// A queue in front of a busy server may be long.
constexpr int kReadTimeoutSeconds = 600;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct RouteName {
  std::string_view path;
  Route route;
};
constexpr std::array<RouteName, 5> kRoutes = {{{"/v1/chat/completions", Route::kChat},
                                               {"/chat/completions", Route::kChat},
                                               {"/v1/completions", Route::kCompletions},
                                               {"/completion", Route::kNative},
                                               {"/completions", Route::kNative}}};

std::string prompt_of(const ClientOptions& options, std::uint64_t number) {
  std::string prompt;
  for (std::uint64_t word = 1; word <= options.prompt_tokens; ++word) prompt += token_text(word + number);
  return prompt.empty() ? prompt : prompt.substr(1);
}

std::string body_of(const ClientOptions& options, std::uint64_t number) {
  Json body = {{"stream", options.stream}, {"ignore_eos", true}};
  if (options.route == Route::kChat) {
    body["messages"] = Json::array({{{"role", "user"}, {"content", prompt_of(options, number)}}});
  } else {
    body["prompt"] = prompt_of(options, number);
  }
  body[options.route == Route::kNative ? "n_predict" : "max_tokens"] = options.output_tokens;
  if (options.stream && options.ask_usage && options.route != Route::kNative) {
    body["stream_options"] = {{"include_usage", true}};
  }
  return body.dump();
}

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
  StreamResult result;
  AnswerReader answer(options_.stream);
  int status = 0;

  httplib::Request request;
  request.method = "POST";
  request.path = options_.path;
  request.headers = {{"Content-Type", "application/json"}};
  request.body = body_of(options_, number);
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
    return !cut_;
  };
  const httplib::Result sent = http_->send(request);
  result.request_seconds = seconds_between(begun, Clock::now());
  const bool complete = answer.finish();
  result.output_tokens = answer.total_tokens().value_or(answer.tokens());
  result.prompt_tokens = answer.prompt_tokens().value_or(options_.prompt_tokens);
  if (sent && status == 200 && complete) {
    result.outcome = StreamOutcome::kCompleted;
    if (!options_.stream) tokens_seen_ += result.output_tokens;
  } else if (cut_) {
    result.outcome = StreamOutcome::kCut;
  } else if (!sent) {
    result.failure = httplib::to_string(sent.error());
  } else {
    result.failure = status == 200 ? "answer without its end" : fmt::format("HTTP status {}", status);
  }
  return result;
}

}  // namespace rooflined::simulator
