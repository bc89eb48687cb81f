#include "daemon/ceiling_keeper.h"

#include "collectors/ceiling/host_reading.h"
#include "collectors/ceiling/system_files.h"
#include "collectors/ceiling/working_set.h"
#include "daemon/clock.h"
#include "metrics/base/log.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace rooflined::daemon {
namespace {

using ceiling::Outcome;
using Kind = ceiling::Schedule::Kind;
using Order = ceiling::MeasurementPlan::Order;

constexpr Duration kLook = std::chrono::milliseconds(500);
// What a crash may lose of what was observed.
constexpr Duration kObservedSaved = std::chrono::hours(1);
// /proc/zoneinfo takes a millisecond on a large machine.
constexpr unsigned kLooksForRoom = 10;

// Machines that were started together must not all measure together.
std::uint64_t seed_of(const std::string& root) {
  const std::string machine = ceiling::read_system_file(root, "/etc/machine-id").value_or("");
  const std::string boot = ceiling::read_system_file(root, "/proc/sys/kernel/random/boot_id").value_or("");
  return std::hash<std::string>{}(machine + boot);
}

ceiling::MeasurementPlan::Options plan_options(const CeilingKeeper::Options& options) {
  return {options.interval, options.idle_for, seed_of(options.probe.root)};
}

bool holds(const ceiling::History& history, const ceiling::ConfirmedResult& result) {
  const auto same = [&result](const ceiling::ConfirmedResult& other) {
    return other.measured_at == result.measured_at;
  };
  const auto suspects = history.suspects();
  return std::any_of(history.results().begin(), history.results().end(), same) ||
         std::any_of(suspects.begin(), suspects.end(), same);
}

void add_unsaved(const std::vector<ceiling::ConfirmedResult>& unsaved, ceiling::History& history) {
  for (const ceiling::ConfirmedResult& result : unsaved) {
    if (!holds(history, result)) history.take(result);
  }
}

void log_result(Outcome outcome, const ceiling::Measurement& measurement, std::optional<BytesPerSecond> adopted) {
  if (outcome == Outcome::kUnstable) {
    log::warning("the measurement is {} and is not adopted", ceiling::verdict_name(measurement.verdict));
    return;
  }
  log::info("measured {:.2f} GB/s ({}, {} threads){}; the ceiling is {:.2f} GB/s", measurement.winner->best / 1e9,
            measurement.winner->kernel, measurement.winner->threads,
            outcome == Outcome::kSuspect ? ", suspect until a second measurement agrees" : "",
            adopted.value_or(0) / 1e9);
}

}  // namespace

CeilingKeeper::CeilingKeeper(const Options& options, const Activity& activity)
    : activity_(activity),
      options_(options),
      state_(load_ceiling_state(options.state_directory, ceiling::read_identity(options.probe.root))),
      plan_(plan_options(options), monotonic_now(), state_.age(wall_now())),
      observed_(monotonic_now(), state_.observed.value_or(ceiling::ObservedRate::Kept())),
      file_seen_(stamp_of(ceiling_state_path(options.state_directory))),
      observed_saved_(monotonic_now()) {}

CeilingKeeper::~CeilingKeeper() {
  stop();
}

void CeilingKeeper::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void CeilingKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (probe_ != nullptr) probe_->stop();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CeilingKeeper::interrupt() {
  const std::lock_guard lock(mutex_);
  if (probe_ != nullptr) probe_->stop();
}

void CeilingKeeper::reload(const Options& options) {
  CeilingState loaded = load_ceiling_state(options.state_directory, ceiling::read_identity(options.probe.root));
  const std::lock_guard lock(mutex_);
  if (probe_ != nullptr) probe_->stop();
  options_ = options;
  plan_.set_options(plan_options(options), monotonic_now());
  if (!loaded.history.empty()) take_state(std::move(loaded));
}

void CeilingKeeper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, kLook, [this] { return stopping_; });
    if (stopping_) break;
    lock.unlock();
    if (monotonic_now() - observed_saved_ >= kObservedSaved) remember_observed();
    const Surroundings around = surroundings();
    notice_file(around);
    const ceiling::IdleWindow::Look look = look_around(around);
    lock.lock();
    const MonotonicTime now = monotonic_now();
    const auto order = plan_.look(now, look, wanted(), state_.history, cache_size_wanted(wall_now()));
    if (plan_.window().idle()) observed_.idle(now);
    if (!order) continue;
    lock.unlock();
    follow_machine(around);
    measure(*order);
    lock.lock();
  }
  lock.unlock();
  remember_observed();
}

CeilingKeeper::Surroundings CeilingKeeper::surroundings() const {
  const std::lock_guard lock(mutex_);
  return Surroundings{options_, state_.identity};
}

bool CeilingKeeper::wanted() const {
  if (options_.configured || options_.measure == Measure::kNever) return false;
  return options_.measure != Measure::kAuto || !options_.gpu_present || activity_.ram_bound_target.load();
}

ceiling::IdleWindow::Look CeilingKeeper::look_around(const Surroundings& surroundings) {
  ceiling::IdleWindow::Look look;
  look.wire.capture_up = activity_.capture_up.load();
  look.wire.exchanges_in_flight = activity_.exchanges_in_flight.load();
  look.wire.busy_at = MonotonicTime::from_ns(activity_.busy_at_ns.load());
  const ceiling::Options& probe = surroundings.options.probe;
  look.host = ceiling::read_host(probe.root);
  if (looks_++ % kLooksForRoom == 0) {
    const Bytes llc = surroundings.identity.llc_bytes;
    room_ = ceiling::plan_working_set(ceiling::read_memory_facts(probe.root),
                                      llc == 0 ? std::nullopt : std::optional(llc), probe.working_set)
                .ok();
  }
  look.room = room_;
  return look;
}

// Another program, or a person, changed the file.
void CeilingKeeper::notice_file(const Surroundings& surroundings) {
  const std::string& directory = surroundings.options.state_directory;
  const FileStamp stamp = stamp_of(ceiling_state_path(directory));
  if (std::exchange(file_seen_, stamp) == stamp || stamp == FileStamp()) return;
  CeilingState loaded = load_ceiling_state(directory, surroundings.identity);
  const std::lock_guard lock(mutex_);
  if (!loaded.history.empty()) take_state(std::move(loaded));
}

// A memory module that is gone, or more memory for a virtual machine: what was measured before is another machine's.
void CeilingKeeper::follow_machine(const Surroundings& surroundings) {
  const ceiling::MachineIdentity identity = ceiling::read_identity(surroundings.options.probe.root);
  if (ceiling::same_machine(surroundings.identity, identity)) return;
  log::warning("this machine changed: the ceiling is measured afresh");
  const std::lock_guard lock(mutex_);
  state_ = CeilingState();
  state_.identity = identity;
  unsaved_.clear();
  observed_ = ceiling::ObservedRate(monotonic_now());
}

// Requires: the lock.
void CeilingKeeper::take_state(CeilingState state) {
  const bool news = state_.history.empty() ||
                    state.history.results().back().measured_at != state_.history.results().back().measured_at;
  state_ = std::move(state);
  add_unsaved(unsaved_, state_.history);
  if (!news) return;
  plan_.result_came(monotonic_now());
  log::info("the state file holds a ceiling of {:.2f} GB/s", state_.history.adopted()->ceiling / 1e9);
}

ceiling::Options CeilingKeeper::probe_options(const Order& order) const {
  const std::lock_guard lock(mutex_);
  ceiling::Options options = options_.probe;
  const ceiling::ConfirmedResult* winner = state_.history.adopted();
  const std::vector<ceiling::ConfirmedResult> suspects = state_.history.suspects();
  if (order.kind == Kind::kAgain && !suspects.empty()) winner = &suspects.back();
  if (winner != nullptr) options.start_from = {winner->kernel, winner->threads, order.kind != Kind::kRegular};
  if (order.kind == Kind::kCache) options.working_set = order.working_set;
  return options;
}

Result<ceiling::Measurement> CeilingKeeper::probe(const ceiling::Options& options) {
  tap::Doorbell::Options doorbell;
  {
    const std::lock_guard lock(mutex_);
    doorbell = options_.doorbell;
  }
  auto started = Probe::start(options, Probe::Priority::kIdle, doorbell);
  if (!started) return started.error();
  Probe* probe = started->get();
  {
    const std::lock_guard lock(mutex_);
    probe_ = std::move(*started);
    if (stopping_ || activity_.exchanges_in_flight.load() > 0) probe_->stop();
  }
  auto measurement = probe->wait(kProbeLimit, {});
  const std::lock_guard lock(mutex_);
  if (const auto& abort = probe_->abort(); abort && abort->latency) {
    abort_latency_.observe(to_seconds(*abort->latency), 1);
    log::info("a request ended the probe: heard {:.0f} µs after its first packet, last load after {:.0f} µs",
              1e6 * to_seconds(*abort->heard_after), 1e6 * to_seconds(*abort->latency));
  }
  probe_.reset();
  return measurement;
}

void CeilingKeeper::measure(const Order& order) {
  log::info("measuring the RAM bandwidth {}", order.kind == Kind::kCache ? "at a model's size" : "ceiling");
  const MonotonicTime began = monotonic_now();
  const auto measurement = probe(probe_options(order));

  Outcome outcome = Outcome::kAborted;
  const bool stopped = !measurement && measurement.error().code == ErrorCode::kBusy;
  if (measurement) {
    outcome = remember(order, *measurement);
    log_result(outcome, *measurement, bandwidth());
  } else if (stopped) {
    log::info("the measurement was ended: a request came, or the daemon stops");
  } else {
    log::warning("the ceiling could not be measured: {}", measurement.error().message());
  }
  const std::lock_guard lock(mutex_);
  const MonotonicTime now = monotonic_now();
  plan_.ended(now, order, now - began, outcome, state_.history);
  if (!measurement && measurement.error().where == "doorbell") plan_.doorbell_failed();
  last_run_ = CollectorSnapshot{"ceiling", measurement.ok() || stopped, to_seconds(now - began)};
  if (order.kind != Kind::kCache || outcome == Outcome::kAborted) ++outcomes_[static_cast<std::size_t>(outcome)];
}

// The file outside the lock: the capture thread asks for the bandwidth, and a disk may be slow.
Outcome CeilingKeeper::remember(const Order& order, const ceiling::Measurement& measurement) {
  CeilingState held;
  std::string directory;
  std::vector<ceiling::ConfirmedResult> unsaved;
  {
    const std::lock_guard lock(mutex_);
    held = state_;
    directory = options_.state_directory;
    unsaved = unsaved_;
  }
  const WallTime now = wall_now();
  Outcome outcome = Outcome::kUnstable;
  CeilingUpdate update = update_ceiling_state(directory, held, [&](CeilingState& state) {
    add_unsaved(unsaved, state.history);
    outcome = order.kind == Kind::kCache ? state.take_cache_probe(order.working_set, measurement, now)
                                         : state.take(measurement, now);
  });
  if (update.saved) {
    unsaved.clear();
  } else {
    log::warning("the ceiling is not remembered across a restart: {}", update.saved.error().message());
    if (measurement.adoptable() && order.kind != Kind::kCache) {
      unsaved.push_back(ceiling::confirmed_result(measurement, now));
      if (unsaved.size() > ceiling::kResultsKept) unsaved.erase(unsaved.begin());
    }
  }
  const std::lock_guard lock(mutex_);
  unsaved_ = std::move(unsaved);
  state_ = std::move(update.state);
  return outcome;
}

// What the decode rate showed, for a node that no measurement ever found idle.
void CeilingKeeper::remember_observed() {
  const MonotonicTime now = monotonic_now();
  observed_saved_ = now;
  CeilingState held;
  std::string directory;
  {
    const std::lock_guard lock(mutex_);
    const ceiling::ObservedRate::Kept kept = observed_.kept(now);
    if (!state_.history.empty() || options_.measure == Measure::kNever || kept.highest <= 0) return;
    state_.observed = kept;
    held = state_;
    directory = options_.state_directory;
  }
  const CeilingUpdate update =
      update_ceiling_state(directory, held, [&](CeilingState& state) { state.observed = held.observed; });
  if (!update.saved) {
    log::warning("the observed rate is not remembered across a restart: {}", update.saved.error().message());
  }
}

}  // namespace rooflined::daemon
