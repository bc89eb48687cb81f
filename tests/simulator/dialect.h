// What a server writes: the frames of a streamed response, whole responses, and answers about itself.
//
// One class per server family, made by make_dialect(); a new one is one file and one line there. The shapes are those
// of the servers' own source code and of captures of them. A frame is one SSE event ("data: …\n\n") or one line of
// JSON; the caller wraps it into HTTP. Pure functions of their input. Thread rule: any.

#pragma once

#include "tests/simulator/model.h"
#include "tests/simulator/request.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::simulator {

struct ServerFacts {
  Model model;
  std::size_t batch_max = 0;
  std::int64_t started_at = 0;  // seconds since 1970
  std::string version;
};

// What the frames of one response show; the engine's progress goes into the last ones.
struct Response {
  GenerationRequest request;
  std::uint64_t id = 0;
  std::string model;
  std::string version;       // the server's
  std::int64_t created = 0;  // seconds since 1970
  std::uint64_t cached_tokens = 0;
  std::uint64_t generated = 0;
  bool finished = false;  // `generated` are all
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

struct RoutePath {
  std::string_view path;
  Route route;
};

// What a GET is answered with.
struct Page {
  std::string path;
  std::string body;
};

class Dialect {
 public:
  virtual ~Dialect() = default;

  // The value of the Server header.
  virtual std::string_view server() const = 0;
  // What it says its version is, unless told otherwise.
  virtual std::string_view version() const = 0;
  // The generation routes; the first is the one that a client of this server uses most.
  virtual std::vector<RoutePath> routes() const = 0;
  // Whether the tokens of one pass come in one frame; otherwise each has its own.
  virtual bool pass_is_frame() const = 0;
  // What the newest `tokens` tokens of `response` put on the wire in one frame: one element, one write.
  virtual std::vector<std::string> token_writes(const Response& response, std::uint64_t tokens) const = 0;
  // The write that ends a stream: finish frame, usage, end marker, as far as the route has them.
  virtual std::string end_write(const Response& response) const = 0;
  // The body of a response that is not streamed.
  virtual std::string whole_body(const Response& response) const = 0;
  // /v1/models and whatever else tells who the server is.
  virtual std::vector<Page> pages(const ServerFacts& facts) const = 0;
};

// "openai": OpenAI's own frames, a finish frame of its own. "vllm", "sglang", "llama.cpp", "ollama": as those servers
// send them.
std::vector<std::string> dialect_names();
// Null for a name that is not one of them.
std::unique_ptr<Dialect> make_dialect(std::string_view name);

// The Content-Type of a streamed response.
std::string_view stream_content_type(Route route);

}  // namespace rooflined::simulator
