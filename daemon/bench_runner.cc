#include "daemon/bench_runner.h"

#include "collectors/ceiling/caches.h"
#include "collectors/ceiling/identity.h"
#include "collectors/ceiling/topology.h"
#include "daemon/bench_ceiling.h"
#include "daemon/bench_files.h"
#include "daemon/ceiling_state.h"
#include "daemon/clock.h"
#include "daemon/measurement_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace rooflined::daemon {
namespace {

using Json = nlohmann::ordered_json;
using Stop = std::function<bool()>;

// A model that took all of its time twice, and gave nothing, would go on doing so for hours.
constexpr std::size_t kTimeoutsMax = 2;

std::vector<unsigned> default_threads(const ceiling::Topology& topology) {
  const unsigned most = topology.threads_max();
  const unsigned cores = std::min(topology.physical_cores(), most);
  const std::set<unsigned> counts = {1, std::max(1U, cores / 2), cores, most};
  return {counts.begin(), counts.end()};
}

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(wall_now().since_epoch()).count();
}

class BenchRunner {
 public:
  BenchRunner(const BenchPlan& plan, const Stop& stop, const Said& said) : plan_(plan), stop_(stop), said_(said) {}

  Result<BenchOutcome> run() {
    if (const Status ready = prepare(); !ready.ok()) return ready.error();
    describe();
    take_ceiling();
    for (std::size_t at = 0; at < models_.size() && !stop_(); ++at) run_model(at);
    finish();
    return std::move(outcome_);
  }

 private:
  BenchDocument& document() { return outcome_.document; }
  BenchInput& input() { return outcome_.document.input; }

  Status prepare() {
    topology_ = ceiling::read_topology("/", std::nullopt);
    threads_ = plan_.threads.empty() ? default_threads(topology_) : plan_.threads;
    std::sort(threads_.begin(), threads_.end());
    threads_.erase(std::unique(threads_.begin(), threads_.end()), threads_.end());
    depths_ = plan_.depths;
    std::sort(depths_.begin(), depths_.end());
    depths_.erase(std::unique(depths_.begin(), depths_.end()), depths_.end());
    for (const std::string& path : plan_.models) {
      auto prepared = prepare_model(path, plan_.bytes);
      if (!prepared.ok()) return prepared.error();
      for (const unsigned depth : depths_) add_kv_bytes(*prepared, depth, plan_.n_gen);
      models_.push_back(std::move(*prepared));
    }
    const auto program = find_llama_bench(plan_.llama_bench);
    if (!program.ok()) return program.error();
    program_ = *program;
    if (const Status usable = check_llama_bench(program_, depths_.back() > 0, stop_); !usable.ok()) return usable;
    for (const PreparedModel& prepared : models_) input().models.push_back(prepared.model);
    if (plan_.folder.empty()) return ok_status();
    std::error_code error;
    std::filesystem::create_directories(plan_.folder, error);
    return write_bench_json(document(), std::filesystem::path(plan_.folder) / "bench.json");
  }

  void describe() {
    const ceiling::MachineIdentity machine = ceiling::read_identity("/");
    input().llc = ceiling::read_llc_bytes("/");
    document().head = {
        {"schema_version", kBenchSchemaVersion},
        {"tool_version", ROOFLINED_VERSION},
        {"generated_utc", utc_text(seconds_now())},
        {"complete", false},
        {"system",
         {{"cpu", machine.cpu_model},
          {"kernel", machine.kernel_release},
          {"memory_bytes", machine.memory_bytes},
          {"logical_cpus", topology_.cpus.size()},
          {"physical_cores", topology_.physical_cores()}}},
        {"llama_bench", {{"path", program_}}},
        {"settings",
         {{"n_prompt", plan_.n_prompt},
          {"n_gen", plan_.n_gen},
          {"repetitions", plan_.repetitions},
          {"threads", threads_},
          {"depths", depths_},
          {"gpu_layers", plan_.gpu_layers},
          {"bytes", plan_.bytes == BytesConvention::kFile ? "file" : "streamed"}}},
        {"membw", nullptr},
    };
  }

  void take_ceiling() {
    if (plan_.ceiling) {
      input().ceiling = plan_.ceiling;
      input().ceiling_source = CeilingSource::kSupplied;
      return;
    }
    if (!plan_.measure_ceiling) return;
    const auto measured = measure_ceiling(stop_, said_);
    if (!measured.ok()) {
      if (!stop_()) input().notes.push_back("the ceiling could not be measured: " + measured.error().message());
      return;
    }
    document().head["membw"] = to_json(*measured);
    const CeilingState kept = load_ceiling_state(plan_.state_directory, ceiling::read_identity("/"));
    CeilingChoice choice = choose_ceiling(*measured, kept.history);
    input().ceiling = choice.ceiling;
    if (choice.ceiling) input().ceiling_source = CeilingSource::kMeasured;
    std::move(choice.notes.begin(), choice.notes.end(), std::back_inserter(input().notes));
  }

  void run_model(std::size_t at) {
    BenchModel& model = input().models[at];
    for (const unsigned threads : threads_) {
      if (stop_() || (model.runs.empty() && timeouts_ >= kTimeoutsMax)) break;
      run_once(at, threads, depths_.front());
    }
    timeouts_ = 0;
    std::vector<SweepPoint> points;
    for (const BenchRun& run : model.runs) points.push_back({run.threads, run.decode, run.prefill});
    const SweepResult sweep = judge_sweep(points);
    for (std::size_t i = 1; i < depths_.size() && sweep.best_decode && !stop_(); ++i) {
      run_once(at, sweep.best_decode->threads, depths_[i]);
    }
  }

  void run_once(std::size_t at, unsigned threads, unsigned depth) {
    BenchModel& model = input().models[at];
    said_(fmt::format("[{} of {}] {}: {} thread{}{}", ++runs_, runs_planned(), model.name, threads,
                      threads == 1 ? "" : "s", depth > 0 ? fmt::format(", depth {}", depth) : ""));
    LlamaBenchOptions options;
    options.path = program_;
    options.model = model.path;
    options.threads = threads;
    options.n_prompt = plan_.n_prompt;
    options.n_gen = plan_.n_gen;
    options.repetitions = plan_.repetitions;
    options.depth = depth;
    options.gpu_layers = plan_.gpu_layers;
    options.limit = plan_.limit;
    const auto result = run_llama_bench(options, stop_);
    if (result.ok()) {
      model.runs.push_back(
          {threads, depth, result->decode, result->decode_deviation, result->prefill, result->prefill_deviation});
      take_from_run(model, *result, plan_.bytes);
      describe_build(*result);
    } else if (!stop_()) {
      if (result.error().code == ErrorCode::kLimit) ++timeouts_;
      const std::string failure = result.error().message();
      if (std::find(model.failures.begin(), model.failures.end(), failure) == model.failures.end()) {
        model.failures.push_back(failure);
      }
    }
    store();
  }

  std::size_t runs_planned() const { return models_.size() * (threads_.size() + depths_.size() - 1); }

  void describe_build(const LlamaBenchResult& result) {
    Json& build = document().head["llama_bench"];
    if (build.contains("build_commit")) return;
    build["build_commit"] = result.build_commit;
    build["build_number"] = result.build_number ? Json(*result.build_number) : Json(nullptr);
    build["backends"] = result.backends;
    build["cpu_info"] = result.cpu_info;
    build["gpu_info"] = result.gpu_info;
    if (!result.gpu_info.empty() && result.gpu_layers == 0) {
      input().notes.push_back(
          "this llama-bench can use a GPU, which may have helped with prefill even without layers on it");
    }
  }

  void store() {
    if (plan_.folder.empty()) return;
    const Status written = write_bench_json(document(), std::filesystem::path(plan_.folder) / "bench.json");
    if (!written.ok() && !write_failed_) input().notes.push_back(written.error().message());
    write_failed_ = write_failed_ || !written.ok();
  }

  void finish() {
    outcome_.interrupted = stop_();
    document().head["complete"] = !outcome_.interrupted;
    if (outcome_.interrupted) {
      input().notes.insert(input().notes.begin(),
                           fmt::format("interrupted: {} of {} runs were begun", runs_, runs_planned()));
    }
  }

  const BenchPlan& plan_;
  const Stop& stop_;
  const Said& said_;
  ceiling::Topology topology_;
  std::string program_;
  std::vector<unsigned> threads_;
  std::vector<unsigned> depths_;
  std::vector<PreparedModel> models_;
  BenchOutcome outcome_;
  std::size_t runs_ = 0;
  std::size_t timeouts_ = 0;  // of the model that runs
  bool write_failed_ = false;
};

}  // namespace

Result<BenchOutcome> run_bench(const BenchPlan& plan, const Stop& stop, const Said& said) {
  return BenchRunner(plan, stop, said).run();
}

}  // namespace rooflined::daemon
