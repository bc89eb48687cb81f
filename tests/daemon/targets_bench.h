// Targets that are told of exchanges, a line each.

#pragma once

#include "daemon/targets.h"
#include "tests/support/ledger_log.h"

#include <chrono>
#include <utility>
#include <vector>

namespace rooflined::test {

using daemon::Targets;

inline Endpoint endpoint(std::uint16_t port, std::uint8_t last_byte = 1) {
  Endpoint endpoint;
  endpoint.address[15] = last_byte;
  endpoint.port = port;
  return endpoint;
}

struct TargetsBench {
  std::vector<Targets::Found> found;
  Targets targets;

  explicit TargetsBench(Targets::Options options = {})
      : targets(with_windows(std::move(options)), [this](const Targets::Found& one) { found.push_back(one); }) {}

  static Targets::Options with_windows(Targets::Options options) {
    if (options.windows.empty()) options.windows = {{"1m", std::chrono::minutes(1)}};
    return options;
  }

  void begin(ExchangeId id, const Endpoint& server, double ms, const char* model = nullptr) {
    ExchangeBegin begin;
    if (model != nullptr) begin.model = model_name_hash(model);
    begin.exchange = id;
    begin.server = server;
    begin.at = at_ms(ms);
    begin.streamed = true;
    targets.on_begin(begin);
  }
  void token(ExchangeId id, double ms) {
    targets.on_tokens(TokenEvent{id, 0, at_ms(ms), 1, 1, TokenSource::kExactLive});
  }
  void end(ExchangeId id, double ms) {
    ExchangeEnd end;
    end.exchange = id;
    end.at = at_ms(ms);
    targets.on_end(end);
  }
  // One whole exchange.
  void exchange(ExchangeId id, const Endpoint& server, double ms, ServerFamily family, const char* model = nullptr) {
    begin(id, server, ms, model);
    targets.on_recognised(id, family, "v1");
    token(id, ms + 10);
    token(id, ms + 20);
    end(id, ms + 21);
  }
};

}  // namespace rooflined::test
