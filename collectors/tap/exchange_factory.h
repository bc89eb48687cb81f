// The HTTP half of the tap, from outside: makes a handler for each connection, all of which tell one ExchangeSink.
//
// Thread: the capture thread only; counters() too.

#pragma once

#include "collectors/tap/connection.h"
#include "collectors/tap/exchange_tracker.h"

#include <functional>
#include <memory>
#include <utility>

namespace rooflined::tap {

class ExchangeFactory final : public ConnectionFactory {
 public:
  // `other_traffic` may be null. Requires: both sinks outlive the factory, and the factory all handlers that it made.
  explicit ExchangeFactory(ExchangeSink& sink, const HttpLimits& limits = {},
                           OtherTrafficSink* other_traffic = nullptr);

  // `on_unreadable(server, why)` is called for each connection that turns out to speak TLS or HTTP/2.
  void tell_unreadable(std::function<void(const Endpoint&, ParseError)> on_unreadable) {
    context_.on_unreadable = std::move(on_unreadable);
  }

  // `on_refused(server, when)` is called for each connection that a server's host refuses.
  void tell_refused(std::function<void(const Endpoint&, LineTime)> on_refused) { on_refused_ = std::move(on_refused); }

  std::unique_ptr<ConnectionHandler> open(const ConnectionInfo& info) override;
  void refused(const Endpoint& server, LineTime at) override {
    if (on_refused_) on_refused_(server, at);
  }

  const HttpCounters& counters() const noexcept { return context_.counters; }

 private:
  TapContext context_;
  std::function<void(const Endpoint&, LineTime)> on_refused_;
};

}  // namespace rooflined::tap
