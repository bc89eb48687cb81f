#include "daemon/llama_bench.h"

#include "daemon/child_process.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace rooflined::daemon {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr Duration kHelpLimit = std::chrono::seconds(20);  // a GPU backend may take seconds to load
constexpr std::size_t kComplaintBytesMax = 300;
constexpr unsigned kBracketsMax = 64;  // of a banner; what holds more is not llama-bench's

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<fs::path> usual_places() {
  std::vector<fs::path> places;
  const std::string path = environment("PATH");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) places.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  for (const std::string& root :
       {std::string("."), environment("HOME"), std::string("/opt"), std::string("/usr/local")}) {
    if (root.empty()) continue;
    places.push_back(fs::path(root) / "llama.cpp/build/bin");
    places.push_back(fs::path(root) / "llama.cpp");
  }
  return places;
}

// The array that begins at `at`, strings and nesting followed; empty where it does not end.
std::string_view array_at(std::string_view text, std::size_t at) {
  int depth = 0;
  bool inside = false;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c == '\\') ++i;
      if (c == '"') inside = false;
    } else if (c == '"') {
      inside = true;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']' && --depth == 0) {
      return text.substr(at, i + 1 - at);
    }
  }
  return {};
}

bool is_record(const Json& json) {
  return json.is_object() && json.contains("avg_ts") && json.contains("n_gen") && json.contains("n_prompt");
}

// The first array of records: a banner may hold brackets of its own.
Json find_records(std::string_view text) {
  std::size_t at = text.find('[');
  for (unsigned tries = 0; tries < kBracketsMax && at != std::string_view::npos; ++tries, at = text.find('[', at + 1)) {
    Json json = Json::parse(array_at(text, at), nullptr, false);
    if (json.is_array() && !json.empty() && is_record(json.front())) return json;
  }
  return nullptr;
}

std::optional<double> positive(const Json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return value >= 1e-9 && value <= 1e18 ? std::optional<double>(value) : std::nullopt;
}

std::string text_of(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? to_label(found->get_ref<const std::string&>()) : "";
}

void take_description(const Json& record, LlamaBenchResult& result) {
  if (const auto size = positive(record, "model_size"); size && *size < 1e18) {
    result.model_size = static_cast<std::uint64_t>(*size);
  }
  if (const auto number = positive(record, "build_number"); number && *number < 1e15) {
    result.build_number = static_cast<std::uint64_t>(*number);
  }
  if (const auto layers = record.find("n_gpu_layers"); layers != record.end() && layers->is_number()) {
    const double value = layers->get<double>();
    result.gpu_layers = value > 0 && value < 1e6 ? static_cast<int>(value) : value < 0 ? -1 : 0;
  }
  result.model_type = text_of(record, "model_type");
  result.build_commit = text_of(record, "build_commit");
  result.cpu_info = text_of(record, "cpu_info");
  result.gpu_info = text_of(record, "gpu_info");
  result.backends = text_of(record, "backends");
}

// Options that it does not know make it fail in these words.
std::string too_old_for(const std::string& complaint) {
  return complaint.find("invalid parameter") == std::string::npos
             ? complaint
             : complaint + " (this llama-bench does not know an option that is needed: a newer llama.cpp does)";
}

Error failed(const ChildOutcome& outcome, const LlamaBenchOptions& options) {
  using End = ChildOutcome::End;
  if (outcome.end == End::kStopped) return {ErrorCode::kBusy, "llama-bench", "interrupted"};
  if (outcome.end == End::kTimeLimit) {
    return {ErrorCode::kLimit, "llama-bench",
            fmt::format("no result after {:g} s with {} thread{} (--timeout allows more)", to_seconds(options.limit),
                        options.threads, options.threads == 1 ? "" : "s")};
  }
  const std::string complaint = too_old_for(llama_bench_complaint(outcome.err));
  if (outcome.end == End::kSignalled) {
    return {ErrorCode::kIo, "llama-bench",
            fmt::format("ended by signal {} ({}): {}", outcome.code, ::strsignal(outcome.code), complaint)};
  }
  return {ErrorCode::kIo, "llama-bench", fmt::format("exit status {}: {}", outcome.code, complaint)};
}

}  // namespace

Result<std::string> find_llama_bench(const std::string& given) {
  const std::string named = given.empty() ? environment("LLAMA_BENCH") : given;
  if (!named.empty()) {
    const fs::path path(named);
    std::error_code ignored;
    const fs::path program = fs::is_directory(path, ignored) ? path / "llama-bench" : path;
    if (is_program(program)) return program.string();
    return Error{ErrorCode::kNotFound, program.string(),
                 "no such program; --llama-bench names llama.cpp's llama-bench, or the folder that holds it"};
  }
  for (const fs::path& folder : usual_places()) {
    if (is_program(folder / "llama-bench")) return (folder / "llama-bench").string();
  }
  return Error{ErrorCode::kNotFound, "llama-bench",
               "not in $PATH nor in the usual build folders; --llama-bench or $LLAMA_BENCH names it"};
}

Status check_llama_bench(const std::string& path, bool depth, const std::function<bool()>& stop) {
  ChildOptions options;
  options.arguments = {path, "--help"};
  options.limit = kHelpLimit;
  const auto outcome = run_child(options, stop);
  if (!outcome.ok()) return outcome.error();
  if (outcome->end == ChildOutcome::End::kStopped) return Error{ErrorCode::kBusy, path, "interrupted"};
  const std::string help = outcome->out + outcome->err;
  if (help.find("--n-gen") == std::string::npos || help.find("json") == std::string::npos) {
    return Error{ErrorCode::kUnsupported, path,
                 "not a llama-bench that writes JSON: its --help names no --n-gen, or no json for --output"};
  }
  if (depth && help.find("--n-depth") == std::string::npos) {
    return Error{ErrorCode::kUnsupported, path,
                 "this llama-bench has no --n-depth: --depth needs a llama.cpp of 2025 or later"};
  }
  return ok_status();
}

std::vector<std::string> llama_bench_arguments(const LlamaBenchOptions& options) {
  std::vector<std::string> arguments = {options.path,
                                        "-m",
                                        options.model,
                                        "-t",
                                        std::to_string(options.threads),
                                        "-p",
                                        std::to_string(options.n_prompt),
                                        "-n",
                                        std::to_string(options.n_gen),
                                        "-r",
                                        std::to_string(options.repetitions),
                                        "-ngl",
                                        std::to_string(options.gpu_layers),
                                        "-o",
                                        "json"};
  if (options.depth > 0) arguments.insert(arguments.end(), {"-d", std::to_string(options.depth)});
  return arguments;
}

Result<LlamaBenchResult> parse_llama_bench(std::string_view output) {
  const Json records = find_records(output);
  if (records.is_null()) return Error{ErrorCode::kInvalid, "llama-bench", "no JSON records in what it printed"};
  LlamaBenchResult result;
  take_description(records.front(), result);
  for (const Json& record : records) {
    if (!is_record(record) || !record["n_prompt"].is_number() || !record["n_gen"].is_number()) continue;
    const double prompt = record["n_prompt"].get<double>();
    const double generated = record["n_gen"].get<double>();
    if (prompt > 0 && generated <= 0) {
      result.prefill = positive(record, "avg_ts");
      result.prefill_deviation = positive(record, "stddev_ts");
    } else if (generated > 0 && prompt <= 0) {
      result.decode = positive(record, "avg_ts");
      result.decode_deviation = positive(record, "stddev_ts");
    }
  }
  if (!result.decode && !result.prefill) {
    return Error{ErrorCode::kInvalid, "llama-bench", "its records hold neither a decode nor a prefill rate"};
  }
  return result;
}

std::string llama_bench_complaint(std::string_view error_output) {
  constexpr std::array<std::string_view, 7> kBanners = {
      "load_backend:", "load_tensors:", "ggml_", "build:", "main:", "register_backend", "register_device"};
  std::vector<std::string> all, telling;
  while (!error_output.empty()) {
    const std::size_t end = std::min(error_output.find('\n'), error_output.size());
    const std::string line = to_label(error_output.substr(0, end), kComplaintBytesMax);
    error_output.remove_prefix(std::min(end + 1, error_output.size()));
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const bool tells = line.find("error") != std::string::npos || line.find("failed") != std::string::npos;
    bool banner = line.find("loaded ") != std::string::npos;
    for (const std::string_view start : kBanners) banner = banner || line.starts_with(start);
    if (banner && !tells) continue;
    if (tells) telling.push_back(line);
    all.push_back(line);
  }
  const std::vector<std::string>& lines = telling.empty() ? all : telling;
  if (lines.empty()) return "no error message";
  return lines.size() == 1 ? lines.back() : lines[lines.size() - 2] + " | " + lines.back();
}

Result<LlamaBenchResult> run_llama_bench(const LlamaBenchOptions& options, const std::function<bool()>& stop) {
  ChildOptions child;
  child.arguments = llama_bench_arguments(options);
  child.limit = options.limit;
  const auto outcome = run_child(child, stop);
  if (!outcome.ok()) return outcome.error();
  if (outcome->end != ChildOutcome::End::kExited || outcome->code != 0) return failed(*outcome, options);
  auto result = parse_llama_bench(outcome->out);
  if (!result.ok()) {
    return Error{result.error().code, "llama-bench",
                 result.error().detail + ": " + llama_bench_complaint(outcome->err)};
  }
  return result;
}

}  // namespace rooflined::daemon
