// What a server writes: the frames of a streamed response, whole responses, and answers about itself.
//
// One class per server family, made by make_dialect(); a new one is one file and one line there. The shapes are those
// of the servers' own source code and of captures of them. A frame is one SSE event ("data: …\n\n"); the caller wraps
// it into HTTP. Pure functions of their input. Thread rule: any.

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
};

// What the frames of one response show; the engine's progress goes into the last five.
struct Response {
  GenerationRequest request;
  std::uint64_t id = 0;
  std::string model;
  std::int64_t created = 0;  // seconds since 1970
  std::uint64_t generated = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

class Dialect {
 public:
  virtual ~Dialect() = default;

  // The value of the Server header.
  virtual std::string_view server() const = 0;
  // Whether it has the routes of llama.cpp's own: /completion and /props.
  virtual bool has_native_routes() const = 0;
  // What the newest token of `response` puts on the wire: one element, one write.
  virtual std::vector<std::string> token_writes(const Response& response) const = 0;
  // The write that ends a stream: finish frame, usage, end marker, as far as the route has them.
  virtual std::string end_write(const Response& response) const = 0;
  // The body of a response that is not streamed.
  virtual std::string whole_body(const Response& response) const = 0;
  // The body of /v1/models.
  virtual std::string models_body(const ServerFacts& facts) const = 0;
  // The body of /props. Requires: has_native_routes().
  virtual std::string props_body(const ServerFacts& facts) const = 0;
};

// "openai": OpenAI's own frames as vLLM sends them. "llama.cpp": llama-server's.
std::vector<std::string> dialect_names();
// Null for a name that is not one of them.
std::unique_ptr<Dialect> make_dialect(std::string_view name);

}  // namespace rooflined::simulator
