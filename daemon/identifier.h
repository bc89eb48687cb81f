// Asks new targets who they are, finds their model files, and watches whether something still listens on their ports.
//
//   in:   ask() from the capture thread; the settings
//   out:  answers and comings and goings, taken by the capture thread when it likes
//
// One thread of its own, since an answer may take seconds. Bounds: one question per endpoint at a time.

#pragma once

#include "collectors/server/identity.h"
#include "config/config.h"
#include "daemon/targets.h"
#include "metrics/exchange.h"
#include "metrics/snapshot.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rooflined::daemon {

class Identifier {
 public:
  struct News {
    Endpoint endpoint;
    std::optional<TargetFacts> facts;
    std::optional<bool> up;
    bool restarted = false;
    // Of the listening socket: its inode.
    std::optional<std::uint64_t> socket = {};
    // Of a server that starts one for each model: where its children listen.
    std::optional<std::vector<std::uint16_t>> child_ports = {};
  };

  explicit Identifier(const config::Config& config);
  ~Identifier();
  Identifier(const Identifier&) = delete;
  Identifier& operator=(const Identifier&) = delete;

  void start();
  void stop();
  // Any thread; returns at once.
  void ask(const Endpoint& endpoint, ServerFamily family);
  // New settings: every known endpoint is asked again.
  void reload(const config::Config& config);
  // What came in since the last call.
  std::vector<News> take_news();
  // How the last question went; empty before the first.
  std::vector<CollectorSnapshot> collectors() const;

 private:
  struct Question {
    Endpoint endpoint;
    ServerFamily family = ServerFamily::kUnknown;
    unsigned attempt = 0;
    MonotonicTime due;
  };
  struct Watched {
    ServerFamily family = ServerFamily::kUnknown;
    std::uint64_t inode = 0;  // of the listening socket; 0: never seen from here (another network namespace)
    bool up = true;
    MonotonicTime asked_at;  // the epoch: never
    bool several_engines = false;
    std::vector<std::uint16_t> child_ports = {};
  };

  void run();
  void answer(const Question& question);
  void watch();
  void find_children();
  void find_moved(const Endpoint& endpoint);
  void find_overlapped();
  std::optional<server::ServerIdentity> ask_server(const config::Config& config, const Question& question,
                                                   bool& answered) const;
  TargetFacts find_facts(const config::Config& config, const Question& question, bool& answered) const;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  config::Config config_;
  std::deque<Question> questions_;
  std::map<Endpoint, Watched> watched_;
  std::vector<News> news_;
  std::optional<CollectorSnapshot> last_;
  std::thread thread_;
};

}  // namespace rooflined::daemon
