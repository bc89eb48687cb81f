// Deploys of all targets: attaches each running target to its history, feeds that with signs and slices, and shows it.
//
//   in:   what the targets say of themselves, about once a second of line time; marks
//   out:  the deploys in a snapshot; what is to be kept across a restart
//
// A history is keyed by server family, served model and port, never by an address: a new container is a deploy of the
// same target. Bounded: kHistoriesMax. Capture thread only.

#pragma once

#include "collectors/server/deploy_history.h"
#include "collectors/server/machine_check.h"
#include "daemon/deploy_state.h"
#include "daemon/mark_request.h"
#include "daemon/targets.h"
#include "metrics/base/result.h"
#include "metrics/snapshot.h"

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rooflined::daemon {

class Deploys {
 public:
  struct Options {
    std::string boot_id;            // of the machine's start; empty: unknown
    std::vector<KeptDeploys> kept;  // from the state file
  };

  // Requires: `targets` outlives this.
  Deploys(Targets& targets, Options options);

  // Cheap where nothing is due.
  void advance_to(LineTime now) {
    if (now >= due_) look(now);
  }
  // The end of a capture: every slice that has ended counts.
  void finish(LineTime now);

  // The generation that runs now. An error: no such target (and which there are), or nothing to accept.
  Result<std::uint64_t> mark(const Mark& mark, LineTime now);

  void describe(std::vector<TargetSnapshot>& targets) const;
  // Tells deploys that made a target slower from memory that became slower. True where measuring it now would help.
  bool judge_machine(const std::vector<server::MemoryReading>& readings);
  std::vector<DeploySnapshot> deploys_of(const Endpoint& endpoint) const;

  // What is to be kept, where a deploy came since the last call, or slices did and some minutes have passed.
  std::optional<std::vector<KeptDeploys>> take_unsaved();
  // The same, however it is.
  std::vector<KeptDeploys> kept() const;

 private:
  static constexpr std::size_t kHistoriesMax = 32;

  struct History {
    DeployKey key;
    std::string boot_id;
    std::uint64_t socket = 0;
    server::DeployHistory deploys;
    LineTime used;
    LearnedTokens learned{};
    bool seen = false;  // in this run of the daemon
  };
  // What was seen of a target when it was looked at last.
  struct Attached {
    History* history = nullptr;
    LineTime since;  // it is shown
    std::string name;
    std::string server;
    std::string model;
    std::uint64_t restarts = 0;
    std::uint64_t answers = 0;
    server::DeployIdentity identity;
    bool up = true;
    bool gpu = false;
    std::uint64_t generation = 0;        // that was told of
    std::optional<LineTime> fell_since;  // it reads less, and that may be the machine's doing
    bool withheld = false;               // nobody is told yet
  };

  void look(LineTime now);
  std::vector<DeployChange> changes_beside(const Attached& attached) const;
  void take_slices(std::vector<Targets::Running>& running);
  void follow(const Targets::Running& one, LineTime now);
  void attach(const Targets::Running& one, Attached& attached, LineTime now);
  History* find(const DeployKey& key);
  bool held_by_another(const History& history, const Endpoint& endpoint) const;
  History& add(const DeployKey& key, std::uint64_t generation, LineTime now);
  bool same_instance(const History& history, const Targets::Running& one) const;
  void tell(const Attached& attached);
  void learn(History& history, const EngineBooks& books);
  void save_by(LineTime at);
  DeploySnapshot snapshot_of(const Attached& attached, const server::Deploy& deploy) const;
  std::vector<DeploySnapshot> snapshots_of(const Attached& attached) const;

  Targets& targets_;
  std::string boot_id_;
  std::list<History> histories_;
  std::map<Endpoint, Attached> attached_;
  std::map<std::string, server::DeployHistory::Counts> counts_;  // by the target's name
  LineTime due_ = LineTime::min();
  LineTime now_ = LineTime::min();
  std::optional<LineTime> save_at_;
};

}  // namespace rooflined::daemon
