// Servers on the watched ports that are something else: after a few exchanges that no inference server would have, the
// capture lets go of them, and looks again later.
//
//   in:   exchanges that are none of ours, by server; the passing of line time
//   out:  the servers to leave out
//
// Whoever calls says whether an engine was ever recognised at a server: such a one is never let go. Bounded. Capture
// thread only.

#pragma once

#include "metrics/base/time.h"
#include "metrics/exchange.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace rooflined::daemon {

class Neighbours {
 public:
  // A look of a minute after a minute, two, four: up to an hour.
  static constexpr Duration kAwayFirst = std::chrono::minutes(1);
  static constexpr Duration kAwayMax = std::chrono::hours(1);
  // A person who opens an engine's own web page makes three or four.
  static constexpr unsigned kForeignMax = 8;
  static constexpr std::size_t kServersMax = 256;
  // Each makes the kernel filter longer by some twenty instructions.
  static constexpr std::size_t kLeftOutMax = 16;

  // True where the server is to be left out from now on.
  bool note_foreign(const Endpoint& server, bool engine, LineTime at);
  // Those whose time is over are looked at again. True where that changed left_out().
  bool advance_to(LineTime now);

  const std::vector<Endpoint>& left_out() const { return left_out_; }

 private:
  struct Server {
    unsigned foreign = 0;
    LineTime seen_at;
    Duration away = kAwayFirst;
    std::optional<LineTime> back_at;  // while it is left out
  };

  std::map<Endpoint, Server> servers_;
  std::vector<Endpoint> left_out_;
};

}  // namespace rooflined::daemon
