// What `rooflined replay` prints: the JSON object of design.md §5, and a table for people.

#pragma once

#include "daemon/targets.h"
#include "daemon/wiring.h"
#include "metrics/engine_books.h"
#include "metrics/log_histogram.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace rooflined::daemon {

// Latencies over the whole replay, of one target.
class LatencyLog final : public RecordObserver {
 public:
  void on_first_tokens(LineTime, double) override {}
  void on_interval(const IntervalRecord& record) override {
    inter_token.add(record.sequence_seconds / record.tokens, record.tokens);
  }
  void on_correction(const IntervalRecord&) override {}
  void on_time_to_first_token(LineTime, Duration waited) override { first_token.add(to_seconds(waited), 1); }

  LogHistogram inter_token;
  LogHistogram first_token;
};

using LatencyLogs = std::map<Endpoint, std::unique_ptr<LatencyLog>>;

struct ReplayTotals {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t gaps = 0;  // of responses, as the next
  std::uint64_t bytes_missing = 0;
  std::uint64_t request_bytes_missing = 0;
  std::map<std::string, std::uint64_t> parse_errors;
  std::optional<LineTime> first_time;
  std::optional<LineTime> last_time;
};

ReplayTotals replay_totals(const Line& line);

nlohmann::json replay_json(const ReplayTotals& totals, const Line& line, const LatencyLogs& latencies,
                           std::optional<BytesPerSecond> ceiling);

// What the sums of one engine say: tokens, passes, times, bytes, MBU. `bandwidth` is that of its share of the memory
// (for R replicas: one R-th), nullopt where it is not known.
nlohmann::json figures_json(const EngineBooks::Settled& sums, const LatencyLog& latencies, double seconds,
                            std::optional<BytesPerSecond> bandwidth);

// The same figures as lines of text.
std::string replay_table(const nlohmann::json& report);

}  // namespace rooflined::daemon
