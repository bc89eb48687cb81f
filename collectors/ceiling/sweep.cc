#include "collectors/ceiling/sweep.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace rooflined::ceiling {
namespace {

// A thread count stays in the sweep while its best comes this near to the leader's median: the kernels differ by up to
// 15 % on one machine, so more than that is not made up by another kernel.
constexpr double kThreadsKept = 0.85;
constexpr std::size_t kCountsKept = 4;
// A clock that stands still is tried again this often before the measurement is given up.
constexpr unsigned kDiscardedMax = 20;

struct Trial {
  Cell cell;
  Duration spent{0};
  unsigned done = 0;

  Duration typical() const { return done == 0 ? Duration(0) : spent / done; }
};

class Runner {
 public:
  Runner(RepetitionSource& source, const ProgressCallback& progress) : source_(source), progress_(progress) {}

  // The discarded and then all counted repetitions of `trials`, in turn, so that a disturbance of some seconds meets
  // all of them alike.
  Status in_turn(std::vector<Trial>& trials, unsigned repetitions) {
    for (unsigned round = 0; round <= repetitions; ++round) {
      for (Trial& trial : trials) {
        if (Status status = repeat(trial, round > 0); !status.ok()) return status;
      }
    }
    for (Trial& trial : trials) judge(trial.cell);
    return ok_status();
  }

  void expect(unsigned more) { total_ = done_ + more; }
  unsigned discarded() const { return discarded_; }
  Duration spent() const { return spent_; }

 private:
  Status repeat(Trial& trial, bool counted) {
    for (;;) {
      const auto repetition = source_.repeat(trial.cell.kernel, trial.cell.threads);
      if (!repetition.ok()) return repetition.error();
      const auto [bytes, elapsed] = repetition.value();
      if (elapsed > Duration(0)) {
        spent_ += elapsed;
        trial.spent += elapsed;
        ++trial.done;
        if (counted) trial.cell.samples.push_back(static_cast<double>(bytes) / to_seconds(elapsed));
        break;
      }
      if (++discarded_ > kDiscardedMax) return Error{ErrorCode::kIo, "clock", "stands still while bytes are read"};
    }
    ++done_;
    if (progress_) progress_({trial.cell.kernel, trial.cell.threads, done_, std::max(done_, total_)});
    return ok_status();
  }

  static void judge(Cell& cell) {
    cell.median = median(cell.samples);
    cell.best = cell.samples.empty() ? 0 : *std::max_element(cell.samples.begin(), cell.samples.end());
    cell.stable = !cell.samples.empty() && cell.median >= kStableRatio * cell.best;
  }

  RepetitionSource& source_;
  const ProgressCallback& progress_;
  Duration spent_{0};
  unsigned done_ = 0;
  unsigned total_ = 0;
  unsigned discarded_ = 0;
};

Trial trial_of(std::size_t kernel, unsigned threads) {
  Trial trial;
  trial.cell.kernel = kernel;
  trial.cell.threads = threads;
  return trial;
}

const Cell* winner(const std::vector<Cell>& cells) {
  const Cell* best = nullptr;
  for (const Cell& cell : cells) {
    if (cell.stable && (best == nullptr || cell.median > best->median)) best = &cell;
  }
  return best;
}

// The thread counts that are still worth trying with the other kernels, with the time that one repetition takes. The
// best four of them: a hybrid processor has many, and every one costs all kernels.
std::vector<std::pair<unsigned, Duration>> counts_kept(const std::vector<Trial>& trials) {
  double leader = 0;
  for (const Trial& trial : trials) leader = std::max(leader, trial.cell.median);
  std::vector<std::pair<unsigned, Duration>> kept;
  for (const Trial& trial : trials) {
    if (trial.cell.best >= kThreadsKept * leader) kept.emplace_back(trial.cell.threads, trial.typical());
  }
  if (kept.size() > kCountsKept) {
    std::vector<double> medians;
    for (const Trial& trial : trials) medians.push_back(trial.cell.median);
    std::sort(medians.begin(), medians.end(), std::greater<>());
    kept.clear();
    for (const Trial& trial : trials) {
      if (trial.cell.median < medians[kCountsKept - 1] || kept.size() == kCountsKept) continue;
      kept.emplace_back(trial.cell.threads, trial.typical());
    }
  }
  return kept;
}

// A known winner, and what may beat it meanwhile: the other kernels at its thread count, its kernel at the counts next
// to it.
std::vector<Trial> neighbourhood(const SweepOptions& options, const SweepStart& start) {
  std::vector<Trial> trials = {trial_of(start.kernel, start.threads)};
  for (const std::size_t kernel : options.kernels) {
    if (kernel != start.kernel) trials.push_back(trial_of(kernel, start.threads));
  }
  const auto& counts = options.thread_counts;
  const auto above = std::upper_bound(counts.begin(), counts.end(), start.threads);
  const auto not_below = std::lower_bound(counts.begin(), counts.end(), start.threads);
  if (above != counts.end()) trials.push_back(trial_of(start.kernel, *above));
  if (not_below != counts.begin()) trials.push_back(trial_of(start.kernel, *std::prev(not_below)));
  return trials;
}

Status confirm(std::size_t kernel, unsigned threads, unsigned confirmations, Runner& runner, Sweep& sweep) {
  std::vector<Trial> confirmation = {trial_of(kernel, threads)};
  if (Status status = runner.in_turn(confirmation, confirmations); !status.ok()) return status;
  sweep.confirmation = std::move(confirmation.front().cell);
  return ok_status();
}

void take_cells(std::vector<Trial>& trials, std::vector<Cell>& cells) {
  for (Trial& trial : trials) cells.push_back(std::move(trial.cell));
}

// The first kernel with every thread count, then the others with the counts that stood up to it.
Status try_all(const SweepOptions& options, Runner& runner, Sweep& sweep) {
  const auto counts = static_cast<unsigned>(options.thread_counts.size());
  const auto kernels = static_cast<unsigned>(options.kernels.size());
  const unsigned each = options.repetitions + 1;
  const unsigned confirming = options.confirmations + 1;
  runner.expect(each * kernels * counts + confirming);
  std::vector<Trial> first;
  for (const unsigned threads : options.thread_counts) first.push_back(trial_of(options.kernels.front(), threads));
  if (Status status = runner.in_turn(first, options.repetitions); !status.ok()) return status;

  const auto kept = counts_kept(first);
  Duration left = options.budget - runner.spent();
  Duration kernel_cost{0};
  for (const auto& [threads, typical] : kept) kernel_cost += typical * each;
  if (!kept.empty()) left -= kept.back().second * confirming;
  std::vector<Trial> others;
  for (std::size_t i = 1; i < options.kernels.size(); ++i) {
    left -= kernel_cost;
    if (left < Duration(0)) {
      sweep.kernels_left_out = options.kernels.size() - i;
      break;
    }
    for (const auto& count : kept) others.push_back(trial_of(options.kernels[i], count.first));
  }
  runner.expect(each * static_cast<unsigned>(others.size()) + confirming);
  if (Status status = runner.in_turn(others, options.repetitions); !status.ok()) return status;
  take_cells(first, sweep.cells);
  take_cells(others, sweep.cells);
  return ok_status();
}

Status try_neighbourhood(const SweepOptions& options, Runner& runner, Sweep& sweep) {
  std::vector<Trial> trials = neighbourhood(options, *options.start);
  runner.expect((options.repetitions + 1) * static_cast<unsigned>(trials.size()) + options.confirmations + 1);
  if (Status status = runner.in_turn(trials, options.repetitions); !status.ok()) return status;
  take_cells(trials, sweep.cells);
  return ok_status();
}

}  // namespace

double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

Result<Cell> run_cell(std::size_t kernel, unsigned threads, unsigned count, RepetitionSource& source,
                      const ProgressCallback& progress) {
  Runner runner(source, progress);
  runner.expect(count + 1);
  std::vector<Trial> trials = {trial_of(kernel, threads)};
  if (const Status status = runner.in_turn(trials, count); !status.ok()) return status.error();
  return std::move(trials.front().cell);
}

Result<Sweep> run_sweep(const SweepOptions& options, RepetitionSource& source, const ProgressCallback& progress) {
  ROOFLINED_CHECK(!options.kernels.empty() && !options.thread_counts.empty());
  Runner runner(source, progress);
  Sweep sweep;
  const bool alone = options.start && options.start->alone;
  Status status = ok_status();
  if (!alone) status = options.start ? try_neighbourhood(options, runner, sweep) : try_all(options, runner, sweep);
  if (!status.ok()) return status.error();

  if (alone) {
    runner.expect(options.confirmations + 1);
    status = confirm(options.start->kernel, options.start->threads, options.confirmations, runner, sweep);
  } else if (const Cell* const chosen = winner(sweep.cells)) {
    status = confirm(chosen->kernel, chosen->threads, options.confirmations, runner, sweep);
  }
  if (!status.ok()) return status.error();
  sweep.repetitions_discarded = runner.discarded();
  return sweep;
}

}  // namespace rooflined::ceiling
