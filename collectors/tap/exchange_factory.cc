#include "collectors/tap/exchange_factory.h"

#include "collectors/tap/http_connection.h"

namespace rooflined::tap {

ExchangeFactory::ExchangeFactory(ExchangeSink& sink, const HttpLimits& limits, OtherTrafficSink* other_traffic)
    : context_{.limits = limits,
               .counters = {},
               .sink = sink,
               .reader = {},
               .last_exchange = 0,
               .on_unreadable = {},
               .other_traffic = other_traffic} {}

std::unique_ptr<ConnectionHandler> ExchangeFactory::open(const ConnectionInfo& info) {
  return std::make_unique<HttpConnection>(context_, info);
}

}  // namespace rooflined::tap
