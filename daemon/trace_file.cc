#include "daemon/trace_file.h"

#include "metrics/base/log.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace rooflined::daemon {
namespace {

using nlohmann::json;

constexpr std::string_view kOpening = "{\"rooflined_trace\":1}";
constexpr std::array<const char*, 3> kSources = {"exact_live", "exact_final", "estimated"};
constexpr std::size_t kLineBytesMax = 4096;

double seconds(LineTime time) {
  return to_seconds(time.since_epoch());
}

json record_json(const IntervalRecord& record) {
  json line = {{"a", seconds(record.a)},
               {"b", seconds(record.b)},
               {"tokens", record.tokens},
               {"passes", record.passes},
               {"batch", record.batch},
               {"context", record.tokens == 0 ? record.context_sum : record.context_sum / record.tokens},
               {"sequence", record.sequence_seconds},
               {"busy", record.busy_seconds},
               {"overlap", record.overlap_seconds},
               {"source", kSources[static_cast<std::size_t>(record.source)]},
               {"frames", record.frames}};
  if (record.bytes_known) {
    line["dense"] = record.weights.dense;
    line["experts"] = record.weights.experts;
    line["kv"] = record.kv_bytes;
  }
  return line;
}

// A finite number of that name, or 0.
double number(const json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return std::isfinite(value) ? value : 0;
}

LineTime time_of(const json& line, const char* name) {
  // Beyond this, seconds do not fit into 64 bits of ns.
  constexpr double kSecondsMax = 9e9;
  const double value = number(line, name);
  return LineTime(from_seconds(std::fabs(value) < kSecondsMax ? value : 0));
}

IntervalRecord record_of(const json& line) {
  IntervalRecord record;
  record.a = time_of(line, "a");
  record.b = time_of(line, "b");
  record.tokens = number(line, "tokens");
  record.passes = number(line, "passes");
  record.batch = number(line, "batch");
  record.context_sum = number(line, "context") * (record.tokens == 0 ? 1 : record.tokens);
  record.sequence_seconds = number(line, "sequence");
  record.busy_seconds = number(line, "busy");
  record.overlap_seconds = number(line, "overlap");
  record.bytes_known = line.contains("dense");
  record.weights = WeightBytes{number(line, "dense"), number(line, "experts")};
  record.kv_bytes = number(line, "kv");
  const std::string source = line.value("source", "estimated");
  for (std::size_t i = 0; i < kSources.size(); ++i) {
    if (source == kSources[i]) record.source = static_cast<TokenSource>(i);
  }
  return record;
}

bool feed_line(const json& line, TraceSink& sink) {
  if (!line.is_object()) return false;
  const auto name = line.find("engine");
  if (name == line.end() || !name->is_string()) return false;
  RecordObserver& engine = sink.engine(name->get_ref<const std::string&>());
  if (line.contains("first_tokens")) {
    engine.on_first_tokens(time_of(line, "at"), number(line, "first_tokens"));
  } else if (line.contains("waited")) {
    engine.on_time_to_first_token(time_of(line, "at"), from_seconds(std::min(number(line, "waited"), 1e9)));
  } else if (line.contains("b")) {
    const IntervalRecord record = record_of(line);
    if (record.b < record.a) return false;
    if (line.contains("correction")) {
      engine.on_correction(record);
    } else if (record.tokens > 0) {
      engine.on_interval(record);
    }
  } else {
    return false;
  }
  return true;
}

}  // namespace

class TraceWriter::Engine final : public RecordObserver {
 public:
  Engine(TraceWriter& writer, std::string name) : writer_(writer), name_(std::move(name)) {}

  void on_first_tokens(LineTime at, double tokens) override { write({{"at", seconds(at)}, {"first_tokens", tokens}}); }
  void on_interval(const IntervalRecord& record) override { write(record_json(record)); }
  void on_correction(const IntervalRecord& record) override {
    json line = record_json(record);
    line["correction"] = true;
    write(std::move(line));
  }
  void on_time_to_first_token(LineTime at, Duration waited) override {
    write({{"at", seconds(at)}, {"waited", to_seconds(waited)}});
  }

 private:
  void write(json line) {
    line["engine"] = name_;
    writer_.write_line(line.dump());
  }

  TraceWriter& writer_;
  std::string name_;
};

TraceWriter::TraceWriter(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {
  write_line(std::string(kOpening));
}

TraceWriter::~TraceWriter() {
  std::fclose(file_);
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::open(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr)
    return Error{ErrorCode::kIo, path, std::string("the trace cannot be written: ") + std::strerror(errno)};
  return std::unique_ptr<TraceWriter>(new TraceWriter(file, path));
}

RecordObserver* TraceWriter::observer(const Endpoint& endpoint) {
  auto& engine = engines_[endpoint];
  if (engine == nullptr) {
    // By port, never by address; a second server on the same port (another container) has a number.
    std::string name = std::to_string(endpoint.port);
    std::size_t same_port = 0;
    for (const auto& [other, unused] : engines_) same_port += other.port == endpoint.port ? 1 : 0;
    if (same_port > 1) name += "-" + std::to_string(same_port);
    engine = std::make_unique<Engine>(*this, name);
  }
  return engine.get();
}

void TraceWriter::write_line(const std::string& line) {
  if (failed_) return;
  if (std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fputc('\n', file_) != EOF) return;
  failed_ = true;
  log::error("{}: the trace ends here: {}", path_, std::strerror(errno));
}

bool is_trace(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return false;
  std::array<char, kOpening.size()> opening{};
  const bool full = std::fread(opening.data(), 1, opening.size(), file) == opening.size();
  std::fclose(file);
  return full && std::string_view(opening.data(), opening.size()) == kOpening;
}

Result<TraceReading> read_trace(const std::string& path, TraceSink& sink) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return Error{ErrorCode::kIo, path, std::strerror(errno)};
  TraceReading reading;
  std::vector<char> line(kLineBytesMax);
  while (std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr) {
    ++reading.lines;
    const json parsed = json::parse(line.data(), nullptr, false);
    if (reading.lines == 1) continue;  // the opening
    if (parsed.is_discarded() || !feed_line(parsed, sink)) ++reading.bad_lines;
  }
  std::fclose(file);
  return reading;
}

}  // namespace rooflined::daemon
