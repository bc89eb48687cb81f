// The HTTP half of the tap, from outside: makes a handler for each connection, all of which tell one ExchangeSink.
//
// Thread: the capture thread only; counters() too.

#pragma once

#include "collectors/tap/connection.h"
#include "collectors/tap/exchange_tracker.h"

#include <memory>

namespace rooflined::tap {

class ExchangeFactory final : public ConnectionFactory {
 public:
  // Requires: `sink` outlives the factory, and the factory all handlers that it made.
  explicit ExchangeFactory(ExchangeSink& sink, const HttpLimits& limits = {});

  std::unique_ptr<ConnectionHandler> open(const ConnectionInfo& info) override;

  const HttpCounters& counters() const noexcept { return context_.counters; }

 private:
  TapContext context_;
};

}  // namespace rooflined::tap
