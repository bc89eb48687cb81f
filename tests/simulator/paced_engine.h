// Runs an Engine in real time: each step ends at its planned instant, and the frames that it bears are written then.
//
// Instants come from one absolute schedule, so an error in one step's timing does not add to the next one's. Frames are
// made while the step lasts and written in one go at its end, by this object's own thread. Bounds: Engine's. Thread
// rule: serve(), report() and stop() from any thread.

#pragma once

#include "metrics/base/time.h"
#include "tests/simulator/dialect.h"
#include "tests/simulator/engine.h"
#include "tests/simulator/frame_maker.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace rooflined::simulator {

enum class ServeOutcome {
  kDone,
  kRefused,  // too many wait
  kLost,     // a write failed: the client has gone
  kStopped,
};

// False: the client cannot be written to.
using WriteFrame = std::function<bool(std::string_view)>;

struct PacedReport {
  Truth truth;
  std::size_t running = 0;
  std::size_t waiting = 0;
  // How often the schedule was moved because a step ended more than kLatenessMax late, and by how much in all.
  std::uint64_t slips = 0;
  double slipped_seconds = 0;

  PacedReport& operator+=(const PacedReport& other);
};

class PacedEngine {
 public:
  // Requires: `dialect` outlives this.
  PacedEngine(const EngineOptions& options, const Dialect& dialect, const FrameOptions& frames = {});
  ~PacedEngine();
  PacedEngine(const PacedEngine&) = delete;
  PacedEngine& operator=(const PacedEngine&) = delete;

  // Generates `response` and returns when its last token is out. A streamed one is written by calls of `write` on the
  // engine's thread; of the others only the counts in `response` are filled in.
  ServeOutcome serve(Response& response, const WriteFrame& write);
  PacedReport report() const;
  // From the next step on; with cold caches for so long.
  void change(const EngineOptions& options, double warm_up_seconds);
  // Every serve() returns soon, and later ones at once.
  void stop();

 private:
  struct Job {
    Response* response = nullptr;
    const WriteFrame* write = nullptr;
    std::promise<ServeOutcome>* outcome = nullptr;
    StreamState stream = {};
  };
  struct PlannedWrite {
    SequenceId id = 0;
    std::string bytes;
    bool last = false;
  };

  void run();
  bool take_jobs();
  void plan(const Step& step);
  void wait_for_step_end();
  void deliver();
  void finish(SequenceId id, ServeOutcome outcome);
  void publish();

  // Of the engine's thread.
  Engine engine_;
  FrameMaker frames_;
  MonotonicTime step_end_;
  std::unordered_map<SequenceId, Job> jobs_;
  std::vector<PlannedWrite> writes_;
  std::uint64_t slips_ = 0;
  double slipped_seconds_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job> incoming_;             // guarded by mutex_
  std::optional<EngineOptions> changed_;  // guarded by mutex_
  double warm_up_seconds_ = 0;            // guarded by mutex_
  PacedReport report_;                    // guarded by mutex_
  std::atomic<bool> stopping_ = false;

  std::thread thread_;
};

}  // namespace rooflined::simulator
