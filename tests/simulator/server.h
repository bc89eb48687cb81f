// The HTTP face of the simulated engines: the routes and pages of the dialect, /health, and the ground truth on
// /sim/truth.
//
// cpp-httplib parses and frames HTTP and keeps a thread for each connection; that thread only waits while the engine's
// thread writes the frames, one send() each, so that no token waits for a thread to wake up. A client that cannot take
// a frame at once because its socket's buffers are full is cut off: it must not hold up the others. Bounds:
// TaskThreads::kTasksMax connections, bodies of 16 MiB. Thread rule: bind(), then run() on one thread; stop() from
// another.

#pragma once

#include "metrics/base/result.h"
#include "tests/simulator/paced_engine.h"
#include "tests/simulator/server_options.h"

#include <cstdint>
#include <memory>
#include <string>

namespace rooflined::simulator {

class Server {
 public:
  // `before` is added to what the engines do: the truth of the servers before this one.
  Server(const ServerOptions& options, const PacedReport& before);
  ~Server();

  // Port 0 takes a free one. The port that was bound.
  Result<std::uint16_t> bind(const std::string& host, std::uint16_t port);
  // Serves until stop(). Requires: bound.
  void run();
  void stop();
  // The engine's part of a change; no restart. Any thread.
  void change(const Change& change);
  PacedReport report() const;

 private:
  class Routes;
  std::unique_ptr<Routes> routes_;
};

}  // namespace rooflined::simulator
