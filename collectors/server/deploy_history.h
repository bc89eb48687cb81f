// The generations of one target: when each began and why, and what it did to the target's speed.
//
//   in:   signs of a restart, identities as they are told, marks; slices of the engine's work; line time
//   out:  the generation that runs, with its change against the one before (deploy-change.md), and the last earlier
//   ones
//
// A generation is compared with the newest one before it that holds enough slices, and, where it is a rollback, with
// what it rolls back to as well. Generations that were too short to be compared with, and the same in all that they
// tell, are added up: a server that is started for an hour a day has a baseline, too. There is no clock: times are line
// times, which are wall times as well. Bounds: DeployState's. Threads: one.

#pragma once

#include "collectors/server/deploy_identity.h"
#include "metrics/base/time.h"
#include "metrics/deploy_change.h"
#include "metrics/time_spans.h"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rooflined::server {

// After over before.
struct Comparison {
  std::uint64_t against = 0;  // the generation before; 0: there is none to compare with
  std::optional<DeployChange> rate;
  std::optional<DeployChange> itl;
};

struct Deploy {
  std::uint64_t generation = 1;
  std::optional<DeployCause> cause;  // absent: it ran already when the target was first seen
  LineTime began;
  DeployIdentity identity;
  std::string marked_version;  // as a mark called it
  Comparison change;
  Comparison rollback;
  bool ended = false;  // the comparison: accepted, a day old, or the machine's doing
};

struct DeployBaseline {
  std::uint64_t generation = 0;  // the newest in it
  DeployIdentity identity;
  std::vector<DeploySlice> slices;  // oldest first
};

// All that is kept of a target across a restart of the daemon.
struct DeployState {
  static constexpr std::size_t kPastMax = 8;
  static constexpr std::size_t kBaselinesMax = 3;

  Deploy current;
  std::optional<LineTime> first_token;   // of the current generation
  std::vector<DeploySlice> slices;       // of the current generation, at most kDeploySlicesMax
  std::deque<Deploy> past;               // oldest first
  std::deque<DeployBaseline> baselines;  // oldest first
};

class DeployHistory {
 public:
  using Counts = std::array<std::uint64_t, kDeployCauseNames.size()>;

  // A target that is seen for the first time.
  DeployHistory(std::uint64_t generation, LineTime now);
  // One that is known from earlier. Its server still runs, or begin() follows.
  explicit DeployHistory(DeployState state);

  // It started anew.
  void begin(DeployCause cause, LineTime now);
  // What the server (or its answers' frames) tells, whenever that is asked or differs from before; and since when.
  void identify(const DeployIdentity& told, LineTime since);
  void mark(const std::string& version, LineTime now);
  // The change is as it should be. False where nothing was being compared.
  bool accept();
  // The memory fell as much: no deploy's doing.
  void blame_machine();

  // Slices that ended, oldest first, and when the engine decoded since.
  void add(std::span<const DeploySlice> slices, const TimeSpans& decoding);
  void advance_to(LineTime now);

  const DeployState& state() const { return state_; }
  const Deploy& current() const { return state_.current; }
  // Nothing to show while it is being compared with nothing.
  const Comparison* change() const;
  // By cause, since the last call.
  Counts take_counts();

 private:
  struct Told {
    DeployIdentity identity;
    LineTime since;
  };

  void fold();
  void compare();
  void count(DeployCause cause) { ++counts_[static_cast<std::size_t>(cause)]; }
  const DeployBaseline* baseline() const;
  const DeployBaseline* rolled_back_to(const DeployBaseline& before) const;

  DeployState state_;
  Counts counts_{};
  bool counted_ = true;        // the current generation is in counts_
  bool identified_ = true;     // the current generation has told who it is, or is as the one before
  std::optional<Told> other_;  // told without a sign of a restart; counts once it lasts
};

}  // namespace rooflined::server
