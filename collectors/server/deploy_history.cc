#include "collectors/server/deploy_history.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rooflined::server {
namespace {

// deploy-change.md, steps 3 and 5.
constexpr Duration kSettling = std::chrono::seconds(30);
constexpr Duration kComparedFor = std::chrono::hours(24);
// Two builds behind one port answer in turn; one that takes over stays.
constexpr Duration kOtherLasts = std::chrono::seconds(5);
// By then a server that loads its model has told who it is, or does not.
constexpr Duration kTellsWithin = std::chrono::minutes(5);
constexpr Duration kTellsAfterToken = std::chrono::seconds(5);

LineTime begin_of(const DeploySlice& slice) {
  return LineTime(slice.index * DeploySlices::kSpan);
}

void append(std::vector<DeploySlice>& to, std::span<const DeploySlice> slices) {
  to.insert(to.end(), slices.begin(), slices.end());
  if (to.size() > kDeploySlicesMax) to.erase(to.begin(), to.end() - kDeploySlicesMax);
}

}  // namespace

DeployHistory::DeployHistory(std::uint64_t generation, LineTime now) {
  state_.current.generation = generation;
  state_.current.began = now;
  identified_ = false;
}

DeployHistory::DeployHistory(DeployState state) : state_(std::move(state)) {}

// The slices of the generation that ends become what later ones are compared with.
void DeployHistory::fold() {
  const Deploy& ended = state_.current;
  auto& baselines = state_.baselines;
  // What was marked is told apart by more than it tells.
  const bool more_of_the_same = !baselines.empty() && state_.slices.size() < kDeployBeforeMin &&
                                ended.cause != DeployCause::kMarked &&
                                !difference(baselines.back().identity, ended.identity);
  if (more_of_the_same) {
    append(baselines.back().slices, state_.slices);
    baselines.back().generation = ended.generation;
  } else if (!state_.slices.empty()) {
    baselines.push_back(DeployBaseline{ended.generation, ended.identity, std::move(state_.slices)});
  }
  if (baselines.size() > DeployState::kBaselinesMax) {
    const auto short_one = std::find_if(baselines.begin(), baselines.end(),
                                        [](const DeployBaseline& one) { return one.slices.size() < kDeployBeforeMin; });
    baselines.erase(short_one != baselines.end() ? short_one : baselines.begin());
  }
  state_.slices.clear();
}

void DeployHistory::begin(DeployCause cause, LineTime now) {
  if (!counted_) count(state_.current.cause.value_or(DeployCause::kRestart));
  // It may have been noticed late: what was measured since is not of the generation that ends.
  std::erase_if(state_.slices, [now](const DeploySlice& one) { return begin_of(one) + DeploySlices::kSpan > now; });
  fold();
  state_.past.push_back(std::move(state_.current));
  if (state_.past.size() > DeployState::kPastMax) state_.past.pop_front();
  Deploy next;
  next.generation = state_.past.back().generation + 1;
  next.cause = cause;
  next.began = now;
  next.identity = state_.past.back().identity;
  state_.current = std::move(next);
  state_.first_token.reset();
  counted_ = cause != DeployCause::kRestart;
  identified_ = cause != DeployCause::kRestart;
  if (counted_) count(cause);
  // It was told already, and the restart is why.
  if (other_) identify(std::exchange(other_, std::nullopt)->identity, now);
}

void DeployHistory::identify(const DeployIdentity& told, LineTime since) {
  Deploy& current = state_.current;
  const auto change = difference(current.identity, told);
  if (identified_ && change) {
    if (!other_ || other_->identity != told) other_ = Told{told, std::max(since, current.began)};
    return;
  }
  other_.reset();
  current.identity = completed(told, current.identity);
  if (change && current.cause == DeployCause::kRestart) current.cause = change;
  identified_ = true;
}

void DeployHistory::mark(const std::string& version, LineTime now) {
  // Restarted a moment ago, and nothing measured since: that is what is marked.
  const bool the_restart = state_.current.cause && state_.current.marked_version.empty() && state_.slices.empty() &&
                           state_.current.cause != DeployCause::kMarked;
  if (!the_restart) {
    begin(DeployCause::kMarked, now);
  } else if (!counted_) {
    state_.current.cause = DeployCause::kMarked;
    count(DeployCause::kMarked);
    counted_ = true;
  }
  state_.current.marked_version = version;
}

bool DeployHistory::accept() {
  if (!state_.current.cause || state_.current.ended) return false;
  state_.current.ended = true;
  return true;
}

void DeployHistory::blame_machine() {
  state_.current.cause = DeployCause::kMachine;
  state_.current.ended = true;
  count(DeployCause::kMachine);
}

void DeployHistory::add(std::span<const DeploySlice> slices, const TimeSpans& decoding) {
  if (!state_.first_token) state_.first_token = decoding.first_after(state_.current.began);
  bool news = false;
  for (const DeploySlice& slice : slices) {
    const LineTime begin = begin_of(slice);
    if (begin + DeploySlices::kSpan <= state_.current.began) {
      // Of the generation before: slices end a few seconds later than they are over.
      auto& baselines = state_.baselines;
      const bool of_the_last =
          !state_.past.empty() && !baselines.empty() && baselines.back().generation == state_.past.back().generation;
      if (of_the_last) append(baselines.back().slices, {&slice, 1});
      continue;
    }
    if (!state_.first_token || begin < *state_.first_token + kSettling) continue;
    append(state_.slices, {&slice, 1});
    news = true;
  }
  if (news) compare();
}

const DeployBaseline* DeployHistory::baseline() const {
  const auto found = std::find_if(state_.baselines.rbegin(), state_.baselines.rend(),
                                  [](const DeployBaseline& one) { return one.slices.size() >= kDeployBeforeMin; });
  return found == state_.baselines.rend() ? nullptr : &*found;
}

const DeployBaseline* DeployHistory::rolled_back_to(const DeployBaseline& before) const {
  if (!difference(before.identity, state_.current.identity)) return nullptr;
  for (auto one = state_.baselines.rbegin(); one != state_.baselines.rend(); ++one) {
    const bool earlier = one->generation < before.generation && one->slices.size() >= kDeployBeforeMin;
    if (earlier && !difference(one->identity, state_.current.identity)) return &*one;
  }
  return nullptr;
}

void DeployHistory::compare() {
  if (state_.current.ended) return;
  const auto against = [this](const DeployBaseline* before) {
    if (before == nullptr) return Comparison();
    return Comparison{before->generation, deploy_change(before->slices, state_.slices, ChangeOf::kRate),
                      deploy_change(before->slices, state_.slices, ChangeOf::kItl)};
  };
  const DeployBaseline* before = baseline();
  state_.current.change = against(before);
  state_.current.rollback = against(before == nullptr ? nullptr : rolled_back_to(*before));
}

void DeployHistory::advance_to(LineTime now) {
  Deploy& current = state_.current;
  // A machine without a battery for its clock may be back in the past.
  current.began = std::min(current.began, now);
  if (state_.first_token) state_.first_token = std::min(*state_.first_token, now);
  if (other_ && now - other_->since >= kOtherLasts) {
    const Told other = *std::exchange(other_, std::nullopt);
    const auto cause = difference(current.identity, other.identity);
    if (cause) {
      begin(*cause, other.since);
      state_.current.identity = completed(other.identity, state_.current.identity);
    }
  }
  if (!counted_) {
    const bool tells_no_more =
        (state_.first_token && now - *state_.first_token > kTellsAfterToken) || now - current.began > kTellsWithin;
    if (identified_ || tells_no_more) {
      count(current.cause.value_or(DeployCause::kRestart));
      counted_ = true;
    }
  }
  if (now - current.began > kComparedFor) current.ended = true;
}

const Comparison* DeployHistory::change() const {
  return state_.current.ended || state_.current.change.against == 0 ? nullptr : &state_.current.change;
}

DeployHistory::Counts DeployHistory::take_counts() {
  return std::exchange(counts_, Counts{});
}

}  // namespace rooflined::server
