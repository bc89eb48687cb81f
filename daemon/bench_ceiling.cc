#include "daemon/bench_ceiling.h"

#include "collectors/ceiling/kernels.h"
#include "daemon/probe.h"

#include <fmt/format.h>

namespace rooflined::daemon {

CeilingChoice choose_ceiling(const ceiling::Measurement& measured, const ceiling::History& history) {
  CeilingChoice choice;
  choice.notes = measured.warnings;
  const ceiling::ConfirmedResult* const adopted = history.adopted();
  if (!measured.adoptable() || !measured.winner) {
    choice.notes.push_back(
        fmt::format("the ceiling that was measured is {}: {}", ceiling::verdict_name(measured.verdict),
                    adopted != nullptr ? "the one that the daemon has adopted is used"
                                       : "measure again on an idle machine, or give --peak-bandwidth"));
    if (adopted != nullptr) choice.ceiling = adopted->ceiling;
    return choice;
  }
  choice.ceiling = measured.winner->best;
  if (adopted == nullptr || measured.winner->best >= ceiling::kSuspectBelow * adopted->ceiling) return choice;
  choice.ceiling = adopted->ceiling;
  choice.notes.push_back(
      fmt::format("{:.2f} GB/s were measured now, under three quarters of the {:.2f} GB/s that the "
                  "daemon has adopted, which are used: something else reads the memory",
                  measured.winner->best * 1e-9, adopted->ceiling * 1e-9));
  return choice;
}

Result<ceiling::Measurement> measure_ceiling(const std::function<bool()>& stop,
                                             const std::function<void(const std::string&)>& said) {
  said("measuring the ceiling: filling the working set");
  auto probe = Probe::start(ceiling::Options{}, Probe::Priority::kNormal);
  if (!probe.ok()) return probe.error();
  Probe& running = **probe;
  auto measured = running.wait(kProbeLimit, [&](const ceiling::Progress& progress) {
    if (stop()) running.stop();
    said(fmt::format("measuring the ceiling: {}, {} threads, repetition {} of about {}",
                     ceiling::kKernels[progress.kernel].name, progress.threads, progress.done, progress.total));
  });
  if (stop()) return Error{ErrorCode::kBusy, "ceiling", "interrupted"};
  return measured;
}

}  // namespace rooflined::daemon
