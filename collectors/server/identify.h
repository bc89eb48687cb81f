// Asks a server of this host who it is: a few GETs, and one POST to Ollama (/api/show), that load and change nothing
// there.
//
// Never a generation route. Never a metrics route but vLLM's, whose cache type is nowhere else: other servers reset
// their averages when theirs is read. Short timeouts, bounded bodies, no redirects, no proxy. Threads: blocks its
// caller for at most a few seconds; any thread.

#pragma once

#include "collectors/server/identity.h"
#include "metrics/base/result.h"
#include "metrics/exchange.h"

#include <chrono>
#include <cstddef>
#include <string>

namespace rooflined::server {

struct IdentifyOptions {
  std::string user_agent = "rooflined";  // "rooflined/VERSION"
  std::string bearer_token;              // from `identify_token_file`; empty: none is sent
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds read_timeout{2000};
  std::chrono::milliseconds request_timeout{4000};  // in all, however slowly it trickles
  std::size_t body_bytes_max = 1024 * 1024;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// "127.0.0.1", "::1": an Endpoint's address in text.
std::string address_text(const Endpoint& endpoint);

// Whether something takes a connection there, within this time. Nothing is sent.
bool accepts_connections(const Endpoint& endpoint, std::chrono::milliseconds within);

// `body` empty: a GET, else a POST of JSON.
Result<HttpAnswer> http_ask(const Endpoint& endpoint, const std::string& path, const std::string& body,
                            const IdentifyOptions& options);
Result<HttpAnswer> http_get(const Endpoint& endpoint, const std::string& path, const IdentifyOptions& options);

// `hint` is what the wire has shown; the server's own word goes before it. An identity that is not complete (a server
// that wants a key, a route that is not there) is still one; an error: nothing useful was answered at all.
Result<ServerIdentity> identify(const Endpoint& endpoint, ServerFamily hint, const IdentifyOptions& options);

}  // namespace rooflined::server
