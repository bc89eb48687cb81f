// Slices of one second of line time, over which records are spread; sums over the last span of whole slices.
//
// One ring serves every span up to the longest. A record lies in the slices that its (a, b] covers, in proportion; what
// is older than the ring is in the counters only. There is no clock: the caller says where the window ends, which is
// where the ledger has settled. Not thread-safe.

#pragma once

#include "metrics/base/time.h"
#include "metrics/interval_record.h"
#include "metrics/log_histogram.h"

#include <cstdint>
#include <vector>

namespace rooflined {

struct WindowSums {
  double output_tokens = 0;
  double decode_tokens = 0;
  double sequence_seconds = 0;
  double busy_seconds = 0;
  double billed_busy_seconds = 0;   // with bytes
  double billed_decode_tokens = 0;  // with bytes
  double bytes = 0;
  double context = 0;
  double estimated_tokens = 0;
  double segments = 0;
  double merged_segments = 0;

  void add(const WindowSums& other, double share = 1);
};

class RollingWindow {
 public:
  static constexpr Duration kSlice = std::chrono::seconds(1);

  // Requires: span_max ≥ 1 s.
  explicit RollingWindow(Duration span_max);

  // Output tokens without an interval: a sequence's first token event.
  void add_first_tokens(LineTime at, double tokens);
  void add_interval(const IntervalRecord& record);
  // Spreads differences; latencies stay as they are.
  void add_correction(const IntervalRecord& record);
  void add_estimated(LineTime first, LineTime last, double tokens);
  void add_loss(LineTime at);

  struct View {
    WindowSums sums;
    LogHistogram latencies;  // of the tokens
    bool lossy = false;
    double seconds = 0;  // that the window spans: less than `span` where it began later
  };
  // The last `span` that ends at the last whole slice before `end`, no slice older than `began`.
  View view(LineTime end, Duration span, LineTime began) const;

 private:
  struct Slice {
    std::int64_t index = INT64_MIN;  // time / kSlice
    WindowSums sums;
    LogHistogram latencies;
    bool lossy = false;
  };

  static std::int64_t index_of(LineTime at);
  // The slice for writing; nullptr where it is older than the ring.
  Slice* slice(std::int64_t index);
  void spread(LineTime a, LineTime b, const WindowSums& sums);

  std::vector<Slice> ring_;
  std::int64_t newest_ = INT64_MIN;
};

}  // namespace rooflined
