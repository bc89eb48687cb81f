// One client connection that sends generation requests, one after the other, and times the frames of the answers.
//
// Thread rule: run() on one thread, abandon() on any.

#pragma once

#include "metrics/base/result.h"
#include "tests/simulator/request.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace httplib {
class Client;
}

namespace rooflined::simulator {

struct ClientOptions {
  std::string origin;  // "http://127.0.0.1:8080"
  std::string path;    // of `route`
  Route route = Route::kChat;
  std::uint64_t prompt_tokens = 64;
  std::uint64_t output_tokens = 128;
  bool stream = true;
  bool ask_usage = true;
};

// How one request is unlike the others.
struct Manner {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  bool stream = true;
  std::uint64_t leave_after = 0;  // frames with text; 0: it stays to the end
  bool slow = false;              // takes one piece in kSlowPause out of a small buffer
};

// Origin, path and route out of a URL; without a path it is /v1/chat/completions.
Result<ClientOptions> client_options_for(const std::string& url);

enum class StreamOutcome { kCompleted, kCut, kLeft, kFailed };

struct StreamResult {
  StreamOutcome outcome = StreamOutcome::kFailed;
  std::string failure;  // reason, where it failed
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  double ttft_seconds = 0;  // 0 without a token
  double request_seconds = 0;
  std::vector<double> intervals_seconds;  // between frames with text
};

class StreamClient {
 public:
  // `cut` ends the request in flight once it is true, `tokens_seen` counts as tokens come; both must outlive this.
  StreamClient(const ClientOptions& options, const std::atomic<bool>& cut, std::atomic<std::uint64_t>& tokens_seen);
  ~StreamClient();

  // `number` chooses the words of the prompt.
  StreamResult run(std::uint64_t number);
  StreamResult run(std::uint64_t number, const Manner& manner);
  // Ends the request in flight, even where nothing comes. From any thread; set `cut` before.
  void abandon();

 private:
  StreamResult judge(StreamResult result, bool sent, int status, bool complete, const Manner& manner) const;

  ClientOptions options_;
  const std::atomic<bool>& cut_;
  std::atomic<std::uint64_t>& tokens_seen_;
  std::unique_ptr<httplib::Client> http_;
};

}  // namespace rooflined::simulator
