// Where deploys meet the world outside the capture thread: the control socket that marks come in by, and the state
// file.
//
//   in:   marks of `rooflined mark-deploy`; what is to be kept
//   out:  marks, answered by the capture thread when it comes round; deploys.json
//
// A socket of mode 0660: root, the daemon's user and its group may mark; who did is logged. One thread of its own,
// since a disk or a peer may be slow; one peer at a time, each for at most two seconds.

#pragma once

#include "daemon/deploy_state.h"
#include "daemon/mark_request.h"
#include "metrics/base/result.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rooflined::daemon {

class DeployDesk {
 public:
  struct Options {
    std::string state_directory;
    std::string socket_path;
  };

  explicit DeployDesk(Options options);
  ~DeployDesk();
  DeployDesk(const DeployDesk&) = delete;
  DeployDesk& operator=(const DeployDesk&) = delete;

  // Without a socket (its folder cannot be written) marks are not taken, which is logged; all else works.
  void start();
  // What was handed over is saved.
  void stop();

  // Capture thread: answers the mark that waits, if one does.
  void answer(const std::function<Result<std::uint64_t>(const Mark&)>& apply);
  // Capture thread: saves this, soon; a newer one replaces one that still waits.
  void keep(std::vector<KeptDeploys> deploys);

 private:
  void run();
  void save();
  void serve(int peer);
  MarkAnswer ask_capture_thread(const Mark& mark);

  Options options_;
  int listener_ = -1;
  int wake_ = -1;  // eventfd(2)
  std::thread thread_;
  bool save_failed_ = false;  // the desk's thread only

  std::mutex mutex_;
  std::condition_variable answered_;
  bool stopping_ = false;
  std::optional<std::vector<KeptDeploys>> unsaved_;
  std::optional<Mark> waiting_;
  std::optional<MarkAnswer> answer_;
};

// Where the daemon listens: the unit's runtime directory, else the state directory.
std::string control_socket_path(const std::string& state_directory);

}  // namespace rooflined::daemon
