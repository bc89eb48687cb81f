#include "daemon/ceiling_keeper.h"

#include "daemon/clock.h"
#include "metrics/base/log.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

namespace rooflined::daemon {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(500);
// With no ceiling yet, five quiet seconds are idle enough (design.md §4).
constexpr Duration kIdleForFirst = std::chrono::seconds(5);
constexpr Duration kPauseFirst = std::chrono::seconds(10);
constexpr Duration kPauseMax = std::chrono::hours(1);
// Busier than this between two looks, and the probe would measure what others leave over.
constexpr double kCpuBusyMax = 0.2;

}  // namespace

CeilingKeeper::CeilingKeeper(const Options& options, const Activity& activity)
    : activity_(activity), options_(options), started_(monotonic_now()), next_try_(started_) {
  blocked_ = {{"capture", true}, {"requests", false}, {"cpu", false}, {"memory", false}};
  state_ = load_ceiling_state(options_.state_directory, ceiling::read_identity(options_.probe.root));
}

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
  if (!loaded.results.empty()) state_ = std::move(loaded);
  next_try_ = monotonic_now();
  failures_ = 0;
}

void CeilingKeeper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, kLook, [this] { return stopping_; });
    if (stopping_) return;
    // Looked at each time: CPU use is that since the last look.
    const bool quiet = idle();
    if (!quiet || !wanted()) continue;
    lock.unlock();
    measure();
    lock.lock();
  }
}

bool CeilingKeeper::wanted() const {
  if (options_.configured || options_.measure == Measure::kNever) return false;
  if (options_.measure == Measure::kAuto && options_.gpu_present && !activity_.ram_bound_target.load()) return false;
  if (monotonic_now() < next_try_) return false;
  const std::optional<Duration> since = age(wall_now());
  return !since || *since >= options_.interval;
}

bool CeilingKeeper::idle() {
  const MonotonicTime now = monotonic_now();
  const MonotonicTime busy_at = MonotonicTime::from_ns(activity_.busy_at_ns.load());
  const Duration quiet = state_.results.empty() ? std::min(kIdleForFirst, options_.idle_for) : options_.idle_for;
  // While the capture is down a request could not be seen, and the probe would not yield to it.
  blocked_["capture"] = !activity_.capture_up.load();
  blocked_["requests"] = activity_.exchanges_in_flight.load() > 0 || now - std::max(busy_at, started_) < quiet;

  // First line of /proc/stat, proc(5): user nice system idle iowait irq softirq steal.
  std::ifstream stat(options_.probe.root + "/proc/stat");
  std::string name;
  std::uint64_t all = 0;
  std::uint64_t idle_ticks = 0;
  stat >> name;
  for (int field = 0; field < 8; ++field) {
    std::uint64_t ticks = 0;
    if (!(stat >> ticks)) break;
    all += ticks;
    if (field == 3 || field == 4) idle_ticks += ticks;
  }
  const double span = static_cast<double>(all - std::exchange(cpu_all_ticks_, all));
  const double idle_span = static_cast<double>(idle_ticks - std::exchange(cpu_idle_ticks_, idle_ticks));
  blocked_["cpu"] = span > 0 && 1 - idle_span / span > kCpuBusyMax;

  idle_ = std::none_of(blocked_.begin(), blocked_.end(),
                       [](const auto& reason) { return reason.first != "memory" && reason.second; });
  return idle_;
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
    log::info("a request ended the probe: last load {:.0f} µs after its first packet",
              1e6 * to_seconds(*abort->latency));
  }
  probe_.reset();
  return measurement;
}

void CeilingKeeper::record(Outcome outcome) {
  ++outcomes_[static_cast<std::size_t>(outcome)];
  failures_ = outcome == Outcome::kAdopted ? 0 : failures_ + 1;
  Duration pause = kPauseFirst;
  for (unsigned i = 1; i < failures_ && pause < kPauseMax; ++i) pause *= 2;
  next_try_ = monotonic_now() + (outcome == Outcome::kAdopted ? Duration(0) : std::min(pause, kPauseMax));
}

void CeilingKeeper::measure() {
  ceiling::Options options;
  std::string directory;
  {
    const std::lock_guard lock(mutex_);
    options = options_.probe;
    directory = options_.state_directory;
  }
  log::info("measuring the RAM bandwidth ceiling");
  const MonotonicTime began = monotonic_now();
  auto measurement = probe(options);

  // The file outside the lock: the capture thread asks for the bandwidth, and a disk may be slow.
  CeilingState state;
  const bool adoptable = measurement.ok() && measurement->adoptable();
  if (adoptable) {
    // What `rooflined membw --adopt` wrote meanwhile counts, too.
    state = load_ceiling_state(directory, ceiling::read_identity(options.root));
    if (state.results.empty()) state = remembered();
    state.add(confirmed_result(*measurement, wall_now()));
    if (const Status saved = save_ceiling_state(directory, state); !saved) {
      log::warning("the ceiling is not remembered across a restart: {}", saved.error().message());
    }
    log::info("ceiling {:.2f} GB/s ({}, {} threads)", state.adopted()->ceiling / 1e9, state.adopted()->kernel,
              state.adopted()->threads);
  } else if (measurement) {
    log::warning("the measurement was not stable and is not adopted ({})", ceiling::verdict_name(measurement->verdict));
  }

  const std::lock_guard lock(mutex_);
  const bool stopped = !measurement && measurement.error().code == ErrorCode::kBusy;
  last_run_ = CollectorSnapshot{"ceiling", measurement.ok() || stopped, to_seconds(monotonic_now() - began)};
  if (!measurement) {
    const Error& error = measurement.error();
    blocked_["memory"] = error.code == ErrorCode::kLimit && error.where != "time";
    record(Outcome::kAborted);
    if (stopped) {
      log::info("the measurement was ended: a request came, or the daemon stops");
    } else {
      log::warning("the ceiling could not be measured: {}", error.message());
    }
    return;
  }
  blocked_["memory"] = false;
  record(adoptable ? Outcome::kAdopted : Outcome::kUnstable);
  if (adoptable) state_ = std::move(state);
  last_ = std::move(*measurement);
}

CeilingState CeilingKeeper::remembered() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::optional<Duration> CeilingKeeper::age(WallTime now) const {
  // A clock that was wrong then or is wrong now: the result has no age that could be told, and is measured again.
  constexpr Duration kFutureMax = std::chrono::hours(1);
  constexpr Duration kUnknownAge = std::chrono::hours(24 * 365);
  if (state_.results.empty()) return std::nullopt;
  const Duration since = now - state_.results.back().measured_at;
  return since < -kFutureMax ? kUnknownAge : std::max(Duration(0), since);
}

std::optional<BytesPerSecond> CeilingKeeper::bandwidth() const {
  const std::lock_guard lock(mutex_);
  if (options_.configured) return options_.configured;
  const ConfirmedResult* adopted = state_.adopted();
  return adopted == nullptr ? std::nullopt : std::optional(adopted->ceiling);
}

bool CeilingKeeper::stale(WallTime now) const {
  const std::lock_guard lock(mutex_);
  const std::optional<Duration> since = age(now);
  return !options_.configured && since && *since > options_.max_age;
}

void CeilingKeeper::describe(WallTime now, Snapshot& snapshot) const {
  const bool is_stale = stale(now);
  const std::lock_guard lock(mutex_);
  if (last_run_) snapshot.collectors.push_back(*last_run_);
  snapshot.ceiling_measurements = outcomes_;
  snapshot.ceiling_abort_latency = abort_latency_.data();
  if (options_.configured) {
    snapshot.ceiling.emplace();
    snapshot.ceiling->source = "configured";
    snapshot.ceiling->bytes_per_second = *options_.configured;
    return;
  }
  if (options_.measure != Measure::kNever) {
    snapshot.idle = idle_;
    snapshot.idle_blocked = blocked_;
  }
  const ConfirmedResult* adopted = state_.adopted();
  if (adopted == nullptr) return;
  CeilingSnapshot& ceiling = snapshot.ceiling.emplace();
  ceiling.source = "measured";
  ceiling.kernel = adopted->kernel;
  ceiling.threads = adopted->threads;
  ceiling.bytes_per_second = adopted->ceiling;
  ceiling.median_bytes_per_second = adopted->median;
  ceiling.median_to_best = adopted->median_to_best();
  ceiling.age_seconds = to_seconds(*age(now));
  ceiling.last_success = state_.results.back().measured_at;
  ceiling.stable = true;
  ceiling.stale = is_stale;
  if (!last_) return;
  for (const ceiling::MeasuredCell& cell : last_->cells) {
    ceiling.cells.push_back(CeilingCellSnapshot{cell.kernel, cell.threads, cell.best, cell.median, cell.stable});
  }
}

}  // namespace rooflined::daemon
