// rooflined membw: measures the memory-bandwidth ceiling once, and shows everything that was measured.

#include "daemon/ceiling_state.h"
#include "daemon/clock.h"
#include "daemon/commands.h"
#include "daemon/measurement_json.h"
#include "daemon/measurement_table.h"
#include "daemon/probe.h"

#include "collectors/ceiling/kernels.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace rooflined::daemon {
namespace {

constexpr unsigned kRepetitionsMax = 1000;  // all samples of all cells still fit into one line of the report

struct Arguments {
  std::vector<unsigned> threads;
  Bytes size = 0;
  bool size_given = false;
  unsigned repetitions = ceiling::kRepetitionsMin;
  bool adopt = false;
  bool json = false;
  bool worker = false;
  bool doorbell = false;
  std::vector<int> numa_nodes;
  ceiling::StartFrom start_from;
  std::string state_directory = "/var/lib/rooflined";
};

std::atomic<const Probe*> running_probe{nullptr};
std::atomic<bool> interrupted{false};

void on_interrupt(int) {
  interrupted.store(true);
  if (const Probe* const probe = running_probe.load()) probe->stop();
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

void show_progress(const ceiling::Progress& progress) {
  std::fputs(fmt::format("\r\033[Kmeasuring: {}, {} thread{}, repetition {} of about {}",
                         ceiling::kKernels[progress.kernel].name, progress.threads, progress.threads == 1 ? "" : "s",
                         progress.done, progress.total)
                 .c_str(),
             stderr);
  std::fflush(stderr);
}

std::string no_sign(const std::string& text) {
  return text.starts_with('-') || text.starts_with('+') ? "a number of bytes was expected, not " + text : "";
}

int failed(const std::string& line, int status) {
  std::fprintf(stderr, "rooflined membw: %s\n", line.c_str());
  return status;
}

Result<CeilingState> adopt(const ceiling::Measurement& measured, const std::string& directory) {
  CeilingState fresh;
  fresh.identity = ceiling::read_identity("/");
  CeilingUpdate update =
      update_ceiling_state(directory, fresh, [&](CeilingState& state) { state.take(measured, wall_now()); });
  if (!update.saved.ok()) return update.saved.error();
  return std::move(update.state);
}

void print_adopted(const ceiling::History& history) {
  fmt::print("adopted      {} (second highest of the last {} here){}\n",
             gigabytes_per_second(history.adopted()->ceiling), history.results().size(),
             history.suspects().empty() ? "" : "; one result waits for a second one that agrees");
}

int report(const Arguments& arguments, const ceiling::Measurement& measured) {
  nlohmann::ordered_json json = to_json(measured);
  if (!arguments.json) fmt::print("{}", measurement_table(measured));
  if (arguments.adopt && measured.adoptable()) {
    const auto state = adopt(measured, arguments.state_directory);
    if (!state.ok()) return failed(state.error().message(), 1);
    json["adopted_bytes_per_second"] = state->history.adopted()->ceiling;
    if (!arguments.json) print_adopted(state->history);
  }
  if (arguments.json) fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return measured.adoptable() ? 0 : 1;
}

int membw(const Arguments& arguments) {
  ceiling::Options options;
  options.thread_counts = arguments.threads;
  if (arguments.size_given) options.working_set = arguments.size;
  options.repetitions = std::max(arguments.repetitions, ceiling::kRepetitionsMin);
  options.numa_nodes = arguments.numa_nodes;
  if (!arguments.start_from.kernel.empty()) options.start_from = arguments.start_from;
  if (arguments.worker) return run_probe_worker(options, arguments.doorbell);

  if (arguments.size_given && arguments.size < kMiB) return failed("--size: at least 1048576 bytes are needed", 2);
  // Said before the measurement, not after it.
  if (arguments.adopt && ::access(arguments.state_directory.c_str(), W_OK | X_OK) != 0) {
    return failed(arguments.state_directory + ": not a folder that can be written; --state names another", 2);
  }
  catch_interrupts();
  const auto probe = Probe::start(options, Probe::Priority::kNormal);
  if (!probe.ok()) return failed(probe.error().message(), 1);
  running_probe.store(probe.value().get());
  if (interrupted.load()) probe.value()->stop();
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  if (terminal) std::fputs("measuring: filling the working set", stderr);
  auto measured = (*probe)->wait(kProbeLimit * options.repetitions / ceiling::kRepetitionsMin,
                                 terminal ? ceiling::ProgressCallback(show_progress) : nullptr);
  running_probe.store(nullptr);
  if (terminal) std::fputs("\r\033[K", stderr);
  if (interrupted.load()) return failed("interrupted", 130);
  if (!measured.ok()) return failed(measured.error().message(), measured.error().code == ErrorCode::kInvalid ? 2 : 1);
  if (arguments.repetitions < ceiling::kRepetitionsMin) {
    measured.value().warnings.push_back(
        fmt::format("--reps {}: {} are the least that tell a median from a best, and were made", arguments.repetitions,
                    ceiling::kRepetitionsMin));
  }
  return report(arguments, *measured);
}

}  // namespace

void add_membw_command(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* const command = app.add_subcommand("membw", "Measure the memory-bandwidth ceiling of this machine now");
  command->add_option("--threads", arguments->threads, "Thread counts to try, as 1,2,4 (default: from the topology)")
      ->delimiter(',')
      ->check(CLI::Range(1U, 65536U));
  CLI::Option* const size = command
                                ->add_option("--size", arguments->size,
                                             "Working set in bytes, or with a unit: 2GiB (default: 4 x the caches)")
                                ->transform(CLI::AsSizeValue(false))
                                // Run before it: it takes "-1" for the largest number.
                                ->transform(CLI::Validator(no_sign, "SIZE"));
  command->add_option("--reps", arguments->repetitions, "Counted repetitions of each cell (default 5)")
      ->check(CLI::Range(1U, kRepetitionsMax));
  command->add_flag("--adopt", arguments->adopt, "Hand the result to the daemon, through its state directory");
  command->add_option("--state", arguments->state_directory,
                      "State directory for --adopt (default /var/lib/rooflined)");
  command->add_flag("--json", arguments->json, "One JSON object on stdout");
  // The probe that `membw` and the daemon start: reports to descriptors that they hand it.
  command->add_flag("--worker", arguments->worker)->group("");
  command->add_flag("--doorbell", arguments->doorbell)->group("");
  command->add_option("--start-kernel", arguments->start_from.kernel)->group("");
  command->add_option("--start-threads", arguments->start_from.threads)->group("");
  command->add_flag("--alone", arguments->start_from.alone)->group("");
  command->add_option("--numa-nodes", arguments->numa_nodes)->delimiter(',')->group("");
  command->callback([arguments, size, &exit_status] {
    arguments->size_given = size->count() > 0;
    exit_status = membw(*arguments);
  });
}

}  // namespace rooflined::daemon
