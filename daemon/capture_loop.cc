#include "daemon/capture_loop.h"

#include "daemon/clock.h"
#include "metrics/base/log.h"

#include <algorithm>
#include <utility>

namespace rooflined::daemon {
namespace {

constexpr std::chrono::milliseconds kReadTimeout{50};
constexpr Duration kPublishEvery = std::chrono::seconds(1);
constexpr Duration kReopenFirst = std::chrono::seconds(1);
constexpr Duration kReopenMax = std::chrono::seconds(30);

}  // namespace

CaptureLoop::CaptureLoop(const tap::LiveOptions& capture, std::unique_ptr<tap::LiveCapture> source, LineOptions line,
                         double cpu_max, Activity& activity, CeilingKeeper& ceiling, Identifier& identifier,
                         DeployDesk& desk)
    : capture_(capture),
      source_(std::move(source)),
      activity_(activity),
      ceiling_(ceiling),
      identifier_(identifier),
      desk_(desk),
      line_([this, &line] {
        line.on_found = [this](const Targets::Found& found) { identifier_.ask(found.endpoint, found.family); };
        return line;
      }()),
      governor_(cpu_max) {}

CaptureLoop::~CaptureLoop() {
  stop();
}

void CaptureLoop::start() {
  if (thread_.joinable()) return;
  thread_ = std::thread([this] { run(); });
  rounds_.wait(0);
}

void CaptureLoop::stop() {
  stopping_.store(true);
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const Snapshot> CaptureLoop::snapshot() const {
  return snapshot_.load();
}

void CaptureLoop::set_settings(std::vector<TargetSettings> targets, double cpu_max) {
  const std::lock_guard lock(settings_mutex_);
  settings_ = NewSettings{std::move(targets), cpu_max};
}

void CaptureLoop::run() {
  MonotonicTime publish_at = monotonic_now();
  while (!stopping_.load()) {
    const MonotonicTime now = monotonic_now();
    read_packets(now);
    take_news();
    if (const auto one_in = governor_.observe(now, thread_cpu_time())) {
      log::warning("watching costs {} [limits] cpu: one flow in {} is watched",
                   *one_in > line_.watch().one_in ? "more than" : "less than", *one_in);
      line_.set_share(*one_in);
    }
    apply_watch();
    tell_activity(now);
    round_seconds_ = to_seconds(monotonic_now() - now);
    if (now >= publish_at) {
      publish_at = std::max(publish_at + kPublishEvery, now);
      publish();
    }
    rounds_.fetch_add(1);
    rounds_.notify_one();
  }
  desk_.keep(line_.deploys().kept());
}

// Line time must not run ahead of packets that wait in the ring: on a busy machine they would all come too late. So it
// follows the clock only while nothing waits, and only up to the moment at which the ring was looked into.
void CaptureLoop::read_packets(MonotonicTime now) {
  bool drained = true;
  if (source_ == nullptr) {
    reopen(now);
    if (source_ == nullptr) std::this_thread::sleep_for(kReadTimeout);
  } else {
    line_.observe(now);
    const auto outcome = source_->read(line_, kReadTimeout);
    if (!outcome) {
      lose_source(outcome.error(), now);
    } else {
      drained = *outcome == tap::ReadOutcome::kTimeout;
      const tap::CaptureStats stats = source_->stats();
      const auto line_now = line_.tap().now();
      if (stats.dropped > stats_.dropped && line_now) line_.targets().lose_everywhere(*line_now);
      stats_ = stats;
    }
  }
  if (drained) line_.advance_live(now);
}

void CaptureLoop::lose_source(const Error& error, MonotonicTime now) {
  log::error("the capture is down: {}", error.message());
  dropped_before_ += stats_.dropped;
  stats_ = tap::CaptureStats();
  source_.reset();
  reopen_pause_ = kReopenFirst;
  reopen_at_ = now + reopen_pause_;
  if (const auto line_now = line_.tap().now()) line_.targets().lose_everywhere(*line_now);
}

void CaptureLoop::reopen(MonotonicTime now) {
  if (now < reopen_at_) return;
  auto source = tap::open_live(capture_);
  if (source) {
    source_ = std::move(*source);
    watch_applied_ = 0;
    log::info("the capture on {} is up again", capture_.interface);
    return;
  }
  reopen_pause_ = std::min(2 * reopen_pause_, kReopenMax);
  reopen_at_ = now + reopen_pause_;
}

void CaptureLoop::take_news() {
  for (const Identifier::News& news : identifier_.take_news()) {
    if (news.facts) line_.targets().learn(news.endpoint, *news.facts);
    if (news.restarted) line_.targets().set_restarted(news.endpoint);
    if (news.socket) line_.targets().set_socket(news.endpoint, *news.socket);
    if (news.child_ports) line_.set_child_ports(news.endpoint, *news.child_ports);
    const auto line_now = line_.tap().now();
    if (news.up && line_now) line_.targets().set_up(news.endpoint, *news.up, *line_now);
  }
  desk_.answer([this](const Mark& mark) { return line_.deploys().mark(mark, line_.tap().now().value_or(LineTime())); });
  const std::lock_guard lock(settings_mutex_);
  if (!settings_) return;
  line_.targets().set_settings(settings_->targets);
  governor_.set_cpu_max(settings_->cpu_max);
  settings_.reset();
}

// A capture that was just opened lets the ports of the settings through, and nothing less.
void CaptureLoop::apply_watch() {
  if (source_ == nullptr || watch_applied_ == line_.watch_changes()) return;
  watch_applied_ = line_.watch_changes();
  if (const Status set = source_->set_watch(line_.watch()); !set) log::error("{}", set.error().message());
}

void CaptureLoop::tell_activity(MonotonicTime now) {
  const std::size_t in_flight = line_.targets().exchanges_in_flight();
  activity_.exchanges_in_flight.store(in_flight);
  activity_.ram_bound_target.store(line_.targets().ram_bound_exists());
  activity_.capture_up.store(source_ != nullptr);
  if (in_flight > 0) activity_.busy_at_ns.store(now.ns());
  if (in_flight > 0 || source_ == nullptr) ceiling_.interrupt();
}

void CaptureLoop::tell_exceeded(const std::vector<TargetSnapshot>& targets) {
  std::set<std::string> now;
  for (const TargetSnapshot& target : targets) {
    if (!target.ceiling_exceeded) continue;
    now.insert(target.target);
    if (exceeded_.contains(target.target)) continue;
    log::warning("target {}: MBU is at or above the measured ceiling; the ceiling is a lower bound", target.target);
  }
  exceeded_ = std::move(now);
}

void CaptureLoop::judge_machine() {
  std::vector<server::MemoryReading> readings;
  for (const ceiling::ConfirmedResult& result : ceiling_.readings()) {
    readings.push_back({LineTime(result.measured_at.since_epoch()), result.ceiling});
  }
  if (line_.deploys().judge_machine(readings)) ceiling_.doubt_memory();
}

void CaptureLoop::publish() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->taken_at = wall_now();
  line_.targets().set_memory_nodes(ceiling_.nodes());
  snapshot->targets = line_.targets().snapshots(ceiling_.bandwidth());
  ceiling_.see_decode_rate(line_.targets().ram_decode_rate());
  ceiling_.judge(snapshot->taken_at, snapshot->targets);
  judge_machine();
  line_.deploys().describe(snapshot->targets);
  tell_exceeded(snapshot->targets);
  history_.note(*snapshot);
  snapshot->node_ratios = Targets::node_ratios(snapshot->targets);
  snapshot->collectors = identifier_.collectors();
  ceiling_.describe(snapshot->taken_at, *snapshot);
  tap::CaptureStats stats = stats_;
  stats.dropped += dropped_before_;
  snapshot->capture = line_.capture_snapshot(capture_.interface, stats);
  snapshot->collectors.push_back(CollectorSnapshot{"tap", source_ != nullptr, round_seconds_});
  if (auto kept = line_.deploys().take_unsaved()) desk_.keep(std::move(*kept));
  snapshot_.store(std::move(snapshot));
}

}  // namespace rooflined::daemon
