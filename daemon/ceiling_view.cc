// What the keeper says of the ceiling to the capture thread: the bandwidth, its caveats, its part of a snapshot.

#include "daemon/ceiling_keeper.h"
#include "daemon/clock.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace rooflined::daemon {
namespace {

CeilingCellSnapshot cell_snapshot(const ceiling::MeasuredCell& cell) {
  return {cell.kernel, cell.threads, cell.best, cell.median, cell.stable, cell.samples};
}

CeilingMeasurementSnapshot measurement_snapshot(const LastMeasurement& last) {
  CeilingMeasurementSnapshot snapshot;
  snapshot.measured_at = last.measured_at;
  snapshot.verdict = ceiling::verdict_name(last.measurement.verdict);
  snapshot.working_set = last.measurement.working_set;
  snapshot.warnings = last.measurement.warnings;
  for (const ceiling::MeasuredCell& cell : last.measurement.cells) snapshot.cells.push_back(cell_snapshot(cell));
  if (last.measurement.winner) snapshot.confirmation = cell_snapshot(*last.measurement.winner);
  return snapshot;
}

// Bytes that a pass of this target read on average, from its counters; 0 before there are enough of them.
double bytes_per_pass(const TargetSnapshot& target) {
  constexpr double kPassesMin = 100;
  if (target.decode_passes < kPassesMin) return 0;
  return (target.decode_bytes_dense + target.decode_bytes_experts + target.decode_bytes_kv) / target.decode_passes;
}

}  // namespace

// Requires: the lock, as do the others that say nothing of it.
std::optional<BytesPerSecond> CeilingKeeper::bandwidth_in_use() const {
  if (options_.configured) return options_.configured;
  if (const ceiling::ConfirmedResult* const adopted = state_.history.adopted()) return adopted->ceiling;
  return options_.measure == Measure::kNever ? std::nullopt : observed_.ceiling();
}

const char* CeilingKeeper::source() const {
  if (options_.configured) return "configured";
  return state_.history.empty() ? "observed" : "measured";
}

std::optional<BytesPerSecond> CeilingKeeper::bandwidth() const {
  const std::lock_guard lock(mutex_);
  return bandwidth_in_use();
}

void CeilingKeeper::doubt_memory() {
  const std::lock_guard lock(mutex_);
  plan_.ask_again();
}

std::vector<ceiling::ConfirmedResult> CeilingKeeper::readings() const {
  const std::lock_guard lock(mutex_);
  std::vector<ceiling::ConfirmedResult> all = state_.history.results();
  for (ceiling::ConfirmedResult& suspect : state_.history.suspects()) all.push_back(std::move(suspect));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.measured_at < b.measured_at; });
  return all;
}

std::vector<ceiling::NodeResult> CeilingKeeper::nodes() const {
  const std::lock_guard lock(mutex_);
  return options_.configured ? std::vector<ceiling::NodeResult>() : state_.history.nodes();
}

bool CeilingKeeper::stale(WallTime now) const {
  const auto age = state_.age(now);
  return !options_.configured && age && *age > options_.max_age;
}

void CeilingKeeper::see_decode_rate(BytesPerSecond rate) {
  const std::lock_guard lock(mutex_);
  observed_.see(monotonic_now(), rate);
}

void CeilingKeeper::judge(WallTime now, std::vector<TargetSnapshot>& targets) {
  const std::lock_guard lock(mutex_);
  cache_sizes_.clear();
  const auto bandwidth = bandwidth_in_use();
  if (!bandwidth) return;
  const std::string from = source();
  for (TargetSnapshot& target : targets) {
    if (target.memory != "ram" || !target.up) continue;
    if (stale(now)) target.caveats.emplace_back("ceiling_stale");
    if (from == "observed") target.caveats.emplace_back("ceiling_observed");
    const auto size = ceiling::cache_probe_size(bytes_per_pass(target), state_.identity.llc_bytes);
    if (from != "measured" || !size) continue;
    cache_sizes_.push_back(*size);
    const ceiling::CacheProbe* const probe = state_.cache_probes.find(*size);
    if (probe == nullptr || !ceiling::cache_assisted(*probe, *bandwidth)) continue;
    target.caveats.emplace_back("cache_assisted");
    target.ceiling_exceeded = false;
  }
}

std::optional<Bytes> CeilingKeeper::cache_size_wanted(WallTime now) const {
  const auto wanted = std::find_if(cache_sizes_.begin(), cache_sizes_.end(), [&](Bytes size) {
    const ceiling::CacheProbe* const probe = state_.cache_probes.find(size);
    return probe == nullptr || now - probe->measured_at > options_.max_age;
  });
  return wanted == cache_sizes_.end() ? std::nullopt : std::optional(*wanted);
}

void CeilingKeeper::describe_measured(WallTime now, CeilingSnapshot& ceiling) const {
  const ceiling::ConfirmedResult& adopted = *state_.history.adopted();
  ceiling.kernel = adopted.kernel;
  ceiling.threads = adopted.threads;
  ceiling.median_bytes_per_second = adopted.median;
  ceiling.median_to_best = adopted.median_to_best();
  ceiling.age_seconds = to_seconds(*state_.age(now));
  ceiling.last_success = state_.history.results().back().measured_at;
  // A file of an earlier build has no last measurement, but only stable ones count.
  ceiling.stable = !state_.last || state_.last->measurement.stable();
  ceiling.suspect = state_.history.newest_is_suspect();
  ceiling.stale = stale(now);
  for (const ceiling::ConfirmedResult& result : state_.history.results()) {
    ceiling.results.push_back({result.measured_at, result.ceiling, result.kernel, result.threads});
  }
}

void CeilingKeeper::describe(WallTime now, Snapshot& snapshot) const {
  const std::lock_guard lock(mutex_);
  if (last_run_) snapshot.collectors.push_back(*last_run_);
  snapshot.ceiling_measurements = outcomes_;
  snapshot.ceiling_abort_latency = abort_latency_.data();
  if (!options_.configured && options_.measure != Measure::kNever) {
    snapshot.idle = plan_.window().idle();
    snapshot.idle_blocked = plan_.window().reasons();
    if (state_.last) snapshot.ceiling_last = measurement_snapshot(*state_.last);
  }
  const auto bandwidth = bandwidth_in_use();
  if (!bandwidth) return;
  CeilingSnapshot& ceiling = snapshot.ceiling.emplace();
  ceiling.source = source();
  ceiling.bytes_per_second = *bandwidth;
  if (ceiling.source == "measured") describe_measured(now, ceiling);
}

}  // namespace rooflined::daemon
