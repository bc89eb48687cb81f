// Tells traffic that no inference server would have from that of an engine nobody has asked for anything yet: health
// checks, scrapes and questions about models are an engine's everyday life.

#pragma once

#include "metrics/base/time.h"
#include "metrics/exchange.h"

#include <string_view>

namespace rooflined::tap {

class OtherTrafficSink {
 public:
  virtual ~OtherTrafficSink() = default;
  // An exchange with this server is over, and was nothing that an inference server answers. Capture thread.
  virtual void on_other_traffic(const Endpoint& server, LineTime at) = 0;
};

// Whether a server of the families that we know answers on this path (without query) something else than generated
// text. Matched by its end: proxies put prefixes in front.
bool is_engine_route(std::string_view path);

// Whether the value of a `Server` header names an inference server. Most are served by uvicorn and the like.
bool is_engine_header(std::string_view server);

}  // namespace rooflined::tap
