#include "daemon/deploys.h"

#include "metrics/base/log.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace rooflined::daemon {
namespace {

using server::Deploy;
using server::DeployCause;

constexpr const char* kUnknownModel = "unknown";  // Targets' word
constexpr Duration kLookEvery = std::chrono::seconds(1);
// What a crash may cost is a few slices of many; what a flash card takes is a limited number of writes.
constexpr Duration kSaveEvery = std::chrono::minutes(5);

std::string version_of(const Deploy& deploy) {
  if (!deploy.marked_version.empty()) return deploy.marked_version;
  return deploy.identity.version.empty() ? deploy.identity.wire : deploy.identity.version;
}

std::optional<ChangeSnapshot> snapshot_of(const std::optional<DeployChange>& change, std::uint64_t against) {
  if (!change) return std::nullopt;
  return ChangeSnapshot{change->ratio, change->low, change->high, change->slices, against};
}

}  // namespace

Deploys::Deploys(Targets& targets, Options options) : targets_(targets), boot_id_(std::move(options.boot_id)) {
  for (KeptDeploys& kept : options.kept) {
    if (histories_.size() == kHistoriesMax) break;
    const LineTime used = kept.state.current.began;
    histories_.push_back(History{std::move(kept.key), std::move(kept.boot_id), kept.socket,
                                 server::DeployHistory(std::move(kept.state)), used, kept.learned});
  }
}

void Deploys::look(LineTime now) {
  due_ = now + kLookEvery;
  now_ = now;
  std::vector<Targets::Running> running = targets_.running();
  std::erase_if(attached_, [&](const auto& entry) {
    return std::none_of(running.begin(), running.end(),
                        [&](const auto& one) { return one.endpoint == entry.first && !one.proxy; });
  });
  for (const Targets::Running& one : running) {
    if (!one.proxy) follow(one, now);
  }
  std::erase_if(counts_, [&](const auto& entry) {
    return std::none_of(running.begin(), running.end(), [&](const auto& one) { return one.name == entry.first; });
  });
  take_slices(running);
}

// The signs since the last look.
void Deploys::follow(const Targets::Running& one, LineTime now) {
  Attached& attached = attached_[one.endpoint];
  attached.name = one.name;
  attached.server = family_name(one.family);
  attached.up = one.up;
  attached.gpu = one.gpu;
  const bool fresh = attached.history == nullptr;
  if (fresh) attached.since = now;
  if (fresh || attached.model != one.model) attach(one, attached, now);
  History& history = *attached.history;
  server::DeployHistory& deploys = history.deploys;
  if (!fresh && one.restarts != attached.restarts) deploys.begin(DeployCause::kRestart, now);
  // A word of the responses is relied on from the second of them on, and is as old as the first.
  const bool by_word = one.answers == attached.answers && one.identity != attached.identity;
  if (by_word || one.answers != attached.answers) deploys.identify(one.identity, by_word ? one.wire_since : now);
  deploys.advance_to(now);
  if (one.socket != 0) history.socket = one.socket;
  history.boot_id = boot_id_;
  history.used = now;
  history.seen = true;
  learn(history, *one.books);
  attached.restarts = one.restarts;
  attached.answers = one.answers;
  attached.identity = one.identity;
  const server::DeployHistory::Counts counts = deploys.take_counts();
  server::DeployHistory::Counts& sums = counts_[one.name];
  for (std::size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
  if (std::exchange(attached.generation, deploys.current().generation) != deploys.current().generation) tell(attached);
}

// The length of tokens is the engine's and the model's, so that a restart of either changes nothing of it.
void Deploys::learn(History& history, const EngineBooks& books) {
  const LearnedTokens learned = books.learned_tokens();
  if (learned.empty()) return;
  const bool more = learned.prompts.learned != history.learned.prompts.learned ||
                    learned.answers.learned != history.learned.answers.learned;
  history.learned = learned;
  if (more) save_by(now_ + kSaveEvery);
}

void Deploys::tell(const Attached& attached) {
  const Deploy& deploy = attached.history->deploys.current();
  log::info("target {}: deploy {}, {}{}{}", attached.name, deploy.generation,
            server::deploy_cause_name(deploy.cause.value_or(DeployCause::kRestart)),
            version_of(deploy).empty() ? "" : ", version ", to_label(version_of(deploy)));
  save_by(now_);
}

void Deploys::save_by(LineTime at) {
  save_at_ = std::min(save_at_.value_or(at), at);
}

// The history of what now runs there: the one that it had before the daemon was started, or before it moved to another
// address; else a new one.
void Deploys::attach(const Targets::Running& one, Attached& attached, LineTime now) {
  History* const before = attached.history;
  const bool unnamed = before != nullptr && attached.model == kUnknownModel;
  const bool other_model = before != nullptr && !unnamed;
  const std::uint64_t generation = other_model ? before->deploys.current().generation : 1;
  attached.model = one.model;
  attached.history = nullptr;
  DeployKey key{std::string(family_name(one.family)), one.model, one.port};
  History* history = find(key);
  for (; history != nullptr && held_by_another(*history, one.endpoint); history = find(key)) ++key.place;
  if (history == nullptr && unnamed) {
    before->key = key;  // now it is known what it serves
    attached.history = before;
    return;
  }
  if (unnamed) histories_.remove_if([before](const History& each) { return &each == before; });
  const bool known = history != nullptr;
  const bool goes_on = known && same_instance(*history, one);
  save_by(now_);
  attached.history = known ? history : &add(key, generation, now);
  one.books->set_learned_tokens(attached.history->learned);
  server::DeployHistory& deploys = attached.history->deploys;
  attached.generation = deploys.current().generation;
  if (other_model) {
    deploys.begin(DeployCause::kModel, now);
  } else if (known && !goes_on) {
    deploys.begin(DeployCause::kRestart, now);
  }
}

bool Deploys::held_by_another(const History& history, const Endpoint& endpoint) const {
  return std::any_of(attached_.begin(), attached_.end(), [&](const auto& entry) {
    return entry.second.history == &history && entry.second.up && entry.first != endpoint;
  });
}

// Whether what runs there was not started anew since the daemon last ran. Within a run of the daemon a target that has
// gone and is back was.
bool Deploys::same_instance(const History& history, const Targets::Running& one) const {
  if (history.seen || history.boot_id != boot_id_) return false;
  if (history.socket != 0 && one.socket != 0) return history.socket == one.socket;
  return !server::difference(history.deploys.current().identity, one.identity);
}

// What happened to the other targets on the same memory when `attached` had its deploy, if they had none since.
std::vector<DeployChange> Deploys::changes_beside(const Attached& attached) const {
  std::vector<DeployChange> changes;
  const LineTime deployed = attached.history->deploys.current().began;
  for (const auto& [endpoint, other] : attached_) {
    if (other.history == attached.history || other.history == nullptr || other.gpu != attached.gpu) continue;
    const server::DeployState& state = other.history->deploys.state();
    if (state.current.began >= deployed) continue;
    const std::span<const DeploySlice> slices(state.slices);
    const auto later = std::find_if(slices.begin(), slices.end(), [deployed](const DeploySlice& slice) {
      return LineTime(slice.index * DeploySlices::kSpan) >= deployed;
    });
    if (auto change = deploy_change({slices.begin(), later}, {later, slices.end()}, ChangeOf::kRate)) {
      changes.push_back(*change);
    }
  }
  return changes;
}

bool Deploys::judge_machine(const std::vector<server::MemoryReading>& readings) {
  constexpr double kFell = 0.95;  // what an alert would fire on
  bool measuring_helps = false;
  for (auto& [endpoint, attached] : attached_) {
    if (attached.history == nullptr) continue;
    server::DeployHistory& deploys = attached.history->deploys;
    const server::Comparison* change = deploys.change();
    attached.withheld = false;
    if (attached.gpu || change == nullptr || !change->rate || change->rate->high >= kFell) {
      attached.fell_since.reset();
      continue;
    }
    if (!attached.fell_since) attached.fell_since = now_;
    const server::MachineVerdict verdict = server::judge_machine(
        *change->rate, deploys.current().began, *attached.fell_since, now_, readings, changes_beside(attached));
    attached.withheld = verdict == server::MachineVerdict::kWaiting;
    measuring_helps = measuring_helps || attached.withheld;
    if (verdict != server::MachineVerdict::kMachine) continue;
    log::warning("target {}: it reads less since deploy {}, and so does the memory: the machine's doing", attached.name,
                 deploys.current().generation);
    deploys.blame_machine();
    save_by(now_);
  }
  return measuring_helps;
}

Deploys::History* Deploys::find(const DeployKey& key) {
  const auto found =
      std::find_if(histories_.begin(), histories_.end(), [&](const History& history) { return history.key == key; });
  return found == histories_.end() ? nullptr : &*found;
}

Deploys::History& Deploys::add(const DeployKey& key, std::uint64_t generation, LineTime now) {
  if (histories_.size() >= kHistoriesMax) {
    const auto attached = [this](const History& history) {
      return std::any_of(attached_.begin(), attached_.end(),
                         [&](const auto& entry) { return entry.second.history == &history; });
    };
    const auto oldest = std::min_element(histories_.begin(), histories_.end(), [&](const auto& a, const auto& b) {
      return std::pair(attached(a), a.used) < std::pair(attached(b), b.used);
    });
    if (!attached(*oldest)) histories_.erase(oldest);
  }
  histories_.push_back(History{key, boot_id_, 0, server::DeployHistory(generation, now), now});
  return histories_.back();
}

// A slice is taken once everything in it has settled, in all engines on the same memory. Those from before a target was
// shown, beside the one whose place it takes, are of neither.
void Deploys::take_slices(std::vector<Targets::Running>& running) {
  LineTime settled = LineTime::max();
  for (const Targets::Running& one : running) settled = std::min(settled, one.books->settled_until());
  const std::vector<Targets::Unshown> unshown = targets_.unshown();
  for (const Targets::Unshown& one : unshown) settled = std::min(settled, one.books->settled_until());
  std::vector<std::vector<DeploySlice>> slices(running.size());
  for (std::size_t i = 0; i < running.size(); ++i) {
    std::vector<const TimeSpans*> others;
    for (std::size_t j = 0; j < running.size(); ++j) {
      const bool beside = j != i && !running[j].proxy && running[j].gpu == running[i].gpu;
      if (beside) others.push_back(&running[j].books->slices().decoding());
    }
    for (const Targets::Unshown& one : unshown) {
      if (one.gpu == running[i].gpu) others.push_back(&one.books->slices().decoding());
    }
    slices[i] = running[i].books->slices().take_until(settled, others);
  }
  for (const Targets::Unshown& one : unshown) one.books->slices().take_until(settled, {});
  for (std::size_t i = 0; i < running.size(); ++i) {
    const auto attached = attached_.find(running[i].endpoint);
    if (attached == attached_.end() || attached->second.history == nullptr || running[i].sampled) continue;
    std::erase_if(slices[i], [since = attached->second.since](const DeploySlice& slice) {
      return LineTime(slice.index * DeploySlices::kSpan) < since;
    });
    attached->second.history->deploys.add(slices[i], running[i].books->slices().decoding());
    if (!slices[i].empty()) save_by(now_ + kSaveEvery);
  }
}

void Deploys::finish(LineTime now) {
  look(now);
}

Result<std::uint64_t> Deploys::mark(const Mark& mark, LineTime now) {
  std::string known;
  for (auto& [endpoint, attached] : attached_) {
    if (attached.history == nullptr) continue;
    if (attached.name != mark.target) {
      known += (known.empty() ? "" : ", ") + attached.name;
      continue;
    }
    server::DeployHistory& deploys = attached.history->deploys;
    if (mark.accept && !deploys.accept()) {
      return Error{ErrorCode::kInvalid, "target " + attached.name, "no deploy is being compared: nothing to accept"};
    }
    if (!mark.accept) deploys.mark(to_label(mark.version), now);
    if (mark.accept) log::info("target {}: deploy {} is accepted", attached.name, deploys.current().generation);
    if (!mark.accept) tell(attached);
    save_by(now_);
    return deploys.current().generation;
  }
  return Error{ErrorCode::kNotFound, "target " + to_label(mark.target),
               known.empty() ? "no target is known yet" : "no such target; there are " + known};
}

DeploySnapshot Deploys::snapshot_of(const Attached& attached, const Deploy& deploy) const {
  DeploySnapshot snapshot;
  snapshot.generation = deploy.generation;
  if (deploy.cause) {
    snapshot.at = WallTime(deploy.began.since_epoch());
    snapshot.cause = server::deploy_cause_name(*deploy.cause);
  }
  snapshot.version = to_label(version_of(deploy));
  snapshot.fingerprint = server::fingerprint(attached.server, attached.model, deploy.identity);
  const auto change = [](const std::optional<DeployChange>& one, std::uint64_t against) {
    return daemon::snapshot_of(one, against);
  };
  snapshot.mbu = change(deploy.change.rate, deploy.change.against);
  snapshot.itl = change(deploy.change.itl, deploy.change.against);
  snapshot.rollback_mbu = change(deploy.rollback.rate, deploy.rollback.against);
  snapshot.rollback_itl = change(deploy.rollback.itl, deploy.rollback.against);
  snapshot.ended = deploy.ended;
  return snapshot;
}

std::vector<DeploySnapshot> Deploys::snapshots_of(const Attached& attached) const {
  std::vector<DeploySnapshot> all;
  if (attached.history == nullptr) return all;
  const server::DeployState& state = attached.history->deploys.state();
  for (const Deploy& past : state.past) all.push_back(snapshot_of(attached, past));
  all.push_back(snapshot_of(attached, state.current));
  all.back().withheld = attached.withheld;
  return all;
}

std::vector<DeploySnapshot> Deploys::deploys_of(const Endpoint& endpoint) const {
  const auto attached = attached_.find(endpoint);
  return attached == attached_.end() ? std::vector<DeploySnapshot>() : snapshots_of(attached->second);
}

void Deploys::describe(std::vector<TargetSnapshot>& targets) const {
  for (TargetSnapshot& target : targets) {
    if (target.further) continue;
    for (const auto& [endpoint, attached] : attached_) {
      if (attached.name != target.target || attached.history == nullptr) continue;
      target.deploys = snapshots_of(attached);
      if (const auto counts = counts_.find(attached.name); counts != counts_.end())
        target.deploys_seen = counts->second;
    }
  }
}

std::vector<KeptDeploys> Deploys::kept() const {
  std::vector<KeptDeploys> all;
  for (const History& history : histories_) {
    all.push_back(KeptDeploys{history.key, history.boot_id, history.socket, history.deploys.state(), history.learned});
  }
  return all;
}

std::optional<std::vector<KeptDeploys>> Deploys::take_unsaved() {
  if (!save_at_ || now_ < *save_at_) return std::nullopt;
  save_at_.reset();
  return kept();
}

}  // namespace rooflined::daemon
