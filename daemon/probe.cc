#include "daemon/probe.h"

#include "collectors/ceiling/worker_pool.h"
#include "daemon/clock.h"
#include "daemon/measurement_json.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rooflined::daemon {
namespace {

using ceiling::ProbeProcess;

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Memory that runs out while a probe holds gigabytes must cost the probe, not the inference server.
void be_first_for_the_oom_killer() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  write_all(fd, "1000");
  ::close(fd);
}

std::vector<std::string> arguments_of(const ceiling::Options& options) {
  std::vector<std::string> arguments = {"membw", "--worker", "--reps", std::to_string(options.repetitions)};
  if (options.working_set) {
    arguments.emplace_back("--size");
    arguments.push_back(std::to_string(*options.working_set));
  }
  if (options.start_from) {
    arguments.insert(arguments.end(), {"--start-kernel", options.start_from->kernel, "--start-threads",
                                       std::to_string(options.start_from->threads)});
    if (options.start_from->alone) arguments.emplace_back("--alone");
  }
  for (const int node : options.numa_nodes) {
    arguments.emplace_back("--numa-nodes");
    arguments.push_back(std::to_string(node));
  }
  for (const unsigned count : options.thread_counts) {
    arguments.emplace_back("--threads");
    arguments.push_back(std::to_string(count));
  }
  return arguments;
}

// A stamp of the wall clock on the other one. This thread may lose its CPU between the two readings: the closest of a
// few pairs tells how far they are apart.
MonotonicTime monotonic_of(CaptureTime stamp) {
  Duration apart{0};
  Duration closest = Duration::max();
  for (int i = 0; i < 4; ++i) {
    const MonotonicTime before = monotonic_now();
    const Duration wall = std::chrono::system_clock::now().time_since_epoch();
    const Duration took = monotonic_now() - before;
    if (took >= closest) continue;
    closest = took;
    apart = wall - before.since_epoch() - took / 2;
  }
  return MonotonicTime(stamp.since_epoch() - apart);
}

}  // namespace

Result<std::unique_ptr<Probe>> Probe::start(const ceiling::Options& options, Priority priority,
                                            const std::optional<tap::Doorbell::Options>& doorbell) {
  std::unique_ptr<tap::Doorbell> bell;
  if (doorbell) {
    auto opened = tap::Doorbell::open(*doorbell);
    if (!opened.ok()) return Error{opened.error().code, "doorbell", opened.error().message()};
    bell = std::move(opened).value();
  }
  // Not the path: after an upgrade another program may lie there.
  std::vector<std::string> arguments = arguments_of(options);
  if (bell) arguments.emplace_back("--doorbell");
  auto process =
      ProbeProcess::start({"/proc/self/exe", std::move(arguments), priority, bell ? bell->descriptor() : -1});
  if (!process.ok()) return process.error();
  return std::unique_ptr<Probe>(new Probe(std::move(process).value(), std::move(bell), options.root));
}

Probe::Probe(std::unique_ptr<ceiling::ProbeProcess> process, std::unique_ptr<tap::Doorbell> doorbell,
             const std::string& root)
    : process_(std::move(process)), memory_(root), doorbell_(std::move(doorbell)) {
  if (doorbell_ != nullptr) doorbell_->listen([this](const Result<CaptureTime>& rung) { on_ring(rung); });
}

void Probe::on_ring(const Result<CaptureTime>& rung) {
  process_->stop();
  const MonotonicTime heard = monotonic_now();
  const MonotonicTime last_load = process_->silence();
  if (!rung.ok()) return end({Cause::kCapture, {}, {}}, Error{rung.error().code, "doorbell", rung.error().message()});
  const MonotonicTime sent = monotonic_of(rung.value());
  end({Cause::kRequest, std::max(Duration(0), last_load - sent), std::max(Duration(0), heard - sent)}, {});
}

void Probe::look_at_memory() {
  const Status status = memory_.look();
  if (status.ok()) return;
  process_->kill();
  end({Cause::kMemory, {}, {}}, status.error());
}

void Probe::end(Abort abort, std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  if (abort_) return;
  abort_ = abort;
  error_ = std::move(error);
}

Result<ceiling::Measurement> Probe::wait(Duration limit, const ceiling::ProgressCallback& progress) {
  std::optional<Result<ceiling::Measurement>> outcome;
  const auto on_line = [&](std::string_view line) {
    ReportItem item = parse_report_line(line);
    if (const auto* done = std::get_if<ceiling::Progress>(&item)) {
      if (progress) progress(*done);
    } else if (auto* measurement = std::get_if<ceiling::Measurement>(&item)) {
      outcome = std::move(*measurement);
    } else {
      outcome = std::get<Error>(item);
    }
  };
  const auto ended = process_->wait(limit, on_line, [this] {
    look_at_memory();
    // A CPU that clears huge pages has no time for the doorbell: 1 to 4 ms of one in eight that rang meanwhile, where
    // the host of a virtual machine had yet to find the memory.
    if (doorbell_ != nullptr) doorbell_->keep_off(process_->reading_cpus());
  });
  doorbell_.reset();  // and whatever it is about to say has been said
  // A result that came before the request to stop is thrown away too: what it measured was disturbed.
  if (ended == ProbeProcess::End::kStopped) {
    end({Cause::kAsked, {}, {}}, {});
    return error_.value_or(Error{ErrorCode::kBusy, "stopped", "the probe was told to stop"});
  }
  abort_.reset();
  if (ended == ProbeProcess::End::kTimeout) {
    return Error{ErrorCode::kLimit, "time",
                 "the probe did not end in " + std::to_string(limit / std::chrono::seconds(1)) + " s"};
  }
  if (outcome) return std::move(*outcome);
  return Error{ErrorCode::kIo, "probe",
               ended == ProbeProcess::End::kSignaled ? "was killed by a signal" : "ended without a report"};
}

int run_probe_worker(const ceiling::Options& options, bool doorbell) {
  be_first_for_the_oom_killer();
  ceiling::WorkerPool::heed_interrupts();
  auto stop = ceiling::StopPage::attach(ceiling::kStopDescriptor);
  if (!stop.ok()) {
    write_all(ceiling::kReportDescriptor, report_line(stop.error()));
    return 2;
  }
  if (doorbell) stop.value().heed(ceiling::kDoorbellDescriptor);
  auto last = std::chrono::steady_clock::now();
  const auto on_progress = [&](const ceiling::Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(50)) return;
    last = now;
    write_all(ceiling::kReportDescriptor, report_line(progress));
  };
  auto measured = ceiling::measure(options, stop.value(), on_progress);
  const bool ok = measured.ok();
  write_all(ceiling::kReportDescriptor,
            report_line(ok ? ReportItem(std::move(measured).value()) : ReportItem(measured.error())));
  return ok ? 0 : 1;
}

}  // namespace rooflined::daemon
