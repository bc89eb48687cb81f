// A server and its clients as a capture file: the engine of `serve` under a load of its own, without clock or sockets.
//
//   in:   ServerOptions, LoadPattern, how long
//   out:  packets with exact stamps, and what the engine has really done
//
// What happens is a queue of events in simulated time: steps end, clients send, something changes. Everything that a
// step bears leaves at its end. No request begins after the duration; those in flight run to their end. Thread rule:
// one thread.

#pragma once

#include "metrics/base/time.h"
#include "tests/simulator/capture_file.h"
#include "tests/simulator/server_options.h"
#include "tests/simulator/truth.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace rooflined::simulator {

struct CaptureRunOptions {
  ServerOptions server;
  LoadPattern load;
  Route route = Route::kChat;
  std::string path;  // of `route`
  std::uint16_t port = 8080;
  double duration_seconds = 0;
  std::uint64_t seed = 1;
};

// The truth between two changes.
struct Phase {
  double from_seconds = 0;
  double to_seconds = 0;
  Truth truth;
};

struct CaptureResult {
  Truth truth;
  std::vector<Phase> phases;  // one more than there were changes
  double seconds = 0;         // until the last token
  std::uint64_t requests = 0;
  std::uint64_t aborted = 0;  // by their clients
  std::uint64_t cut = 0;      // by restarts
  std::uint64_t refused = 0;  // connections, while nobody was there
};

class CaptureRun {
 public:
  // Requires: `file` outlives this.
  CaptureRun(const CaptureRunOptions& options, CaptureFile& file);
  ~CaptureRun();

  CaptureResult run();

 private:
  enum class EventKind : std::uint8_t { kStepEnd, kSend, kArrival, kChange };
  struct Event {
    Duration at;
    std::uint64_t order;  // of those at one time, the first made comes first
    EventKind kind;
    std::size_t subject;       // replica, client, change
    std::uint64_t generation;  // of the server, for kStepEnd
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  struct Client {
    std::unique_ptr<CapturedConnection> connection;  // null: not connected
    bool keeps_coming = true;
  };
  struct InFlight {
    Response response;
    StreamState stream;
    std::size_t client = 0;
    std::size_t replica = 0;
    std::uint64_t abort_at = 0;  // output tokens; 0: never
  };
  struct Replica {
    Engine engine;
    FrameMaker frames;
    const Step* step = nullptr;  // in progress
    std::size_t in_flight = 0;
  };

  void add_event(Duration at, EventKind kind, std::size_t subject);
  void handle(const Event& event);
  void add_clients();
  void arrive();
  void send(std::size_t client);
  void connect(Client& client);
  void submit(std::size_t client);
  std::size_t choose_replica();
  void begin_step(std::size_t index);
  void end_step(std::size_t index);
  void deliver(const Emission& emission);
  void end_request(SequenceId id, bool completed);
  void change(const Change& change);
  void restart(double seconds);
  void end_phase();
  Truth truth() const;
  CaptureTime stamp() const;

  CaptureRunOptions options_;
  CaptureFile& file_;
  std::unique_ptr<Dialect> dialect_;
  std::mt19937_64 random_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t events_made_ = 0;
  Duration now_{0};

  std::vector<Replica> replicas_;
  std::uint64_t generation_ = 0;
  Duration down_until_{0};
  std::map<std::size_t, Client> clients_;
  std::size_t arrivals_ = 0;
  std::size_t connections_made_ = 0;
  std::unordered_map<SequenceId, InFlight> in_flight_;
  SequenceId last_id_ = 0;

  CaptureResult result_;
  Truth phase_begin_;
};

}  // namespace rooflined::simulator
