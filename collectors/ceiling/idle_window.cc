#include "collectors/ceiling/idle_window.h"

#include <algorithm>

namespace rooflined::ceiling {
namespace {

constexpr double kCpuShareMax = 0.2;
constexpr double kCpusMax = 1.5;
// A tenth of the last 10 s in which a task waited for a CPU, or a hundredth for memory, is somebody at work.
constexpr double kCpuPressureMax = 10;
constexpr double kMemoryPressureMax = 1;
constexpr Duration kLookGapMax = std::chrono::seconds(2);

}  // namespace

double cpus_busy_max(unsigned cpus) {
  return std::min(kCpuShareMax * std::max(1U, cpus), kCpusMax);
}

void IdleWindow::restart(MonotonicTime now) {
  readings_.clear();
  began_ = now;
}

void IdleWindow::look(MonotonicTime now, Duration quiet, const Look& look) {
  if (!readings_.empty() && now - readings_.back().at > kLookGapMax) readings_.clear();
  // While the capture is down a request could not be seen, and the probe would not yield to it.
  reasons_["capture"] = !look.wire.capture_up || now < deaf_until_;
  const MonotonicTime busy_at = std::max(began_, look.wire.busy_at.value_or(MonotonicTime::min()));
  reasons_["requests"] = look.wire.exchanges_in_flight > 0 || now - busy_at < quiet;
  reasons_["memory"] = !look.room;
  reasons_["contended"] = now < contended_until_;
  look_at_host(now, look.host);
}

double IdleWindow::cpus_busy(Duration span) const {
  const Reading& last = readings_.back();
  const auto first = std::find_if(readings_.begin(), readings_.end(),
                                  [&](const Reading& reading) { return last.at - reading.at <= span; });
  const double seconds = to_seconds(last.at - first->at);
  return seconds > 0 ? (last.host.busy_seconds.value_or(0) - first->host.busy_seconds.value_or(0)) / seconds : 0;
}

double IdleWindow::tasks(Duration span) const {
  double sum = 0;
  double count = 0;
  for (const Reading& reading : readings_) {
    if (readings_.back().at - reading.at > span) continue;
    sum += reading.host.tasks.value_or(0);
    ++count;
  }
  return sum / count;
}

void IdleWindow::look_at_host(MonotonicTime now, const HostReading& host) {
  readings_.push_back(Reading{now, host});
  while (now - readings_.front().at > kHostSpanLong) readings_.pop_front();
  const bool whole = now - readings_.front().at >= kHostSpan;
  const double busy_max = cpus_busy_max(host.cpus);
  if (host.busy_seconds) {
    reasons_["cpu"] = !whole || std::max(cpus_busy(kHostSpan), cpus_busy(kHostSpanLong)) > busy_max;
  }
  if (host.tasks) {
    // More than use, since a task that waits for a disk or a quota works for somebody, too.
    reasons_["load"] = !whole || std::max(tasks(kHostSpan), tasks(kHostSpanLong)) > 2 * busy_max;
  }
  if (host.cpu_pressure || host.memory_pressure) {
    reasons_["pressure"] =
        host.cpu_pressure.value_or(0) > kCpuPressureMax || host.memory_pressure.value_or(0) > kMemoryPressureMax;
  }
}

bool IdleWindow::idle() const {
  return !reasons_.empty() &&
         std::none_of(reasons_.begin(), reasons_.end(), [](const auto& reason) { return reason.second; });
}

}  // namespace rooflined::ceiling
