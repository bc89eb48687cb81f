// One settled entry in the books of an engine, the only thing that counters, windows, histograms and the trace consume.
//
// A correction (a total or a prompt length that came late) has the same form: its fields are differences, which may be
// negative, over the time of the sequence that it corrects. Formulas: ledger.md "Billing a settled interval".

#pragma once

#include "metrics/base/time.h"
#include "metrics/exchange.h"
#include "metrics/geometry.h"

#include <cstdint>

namespace rooflined {

struct IntervalRecord {
  LineTime a;                   // the sequence's token event before
  LineTime b;                   // this token event
  double tokens = 0;            // k
  double passes = 0;            // p / B
  double batch = 1;             // B, per replica
  double sequence_seconds = 0;  // Δ
  double busy_seconds = 0;      // Δ / B, replica-seconds
  double overlap_seconds = 0;   // the part of busy_seconds during which a request was being prefilled
  double context_sum = 0;       // Σ c over the tokens
  WeightBytes weights;          // p·W(B)/B
  double kv_bytes = 0;          // Σ KV(c)
  bool bytes_known = false;     // a geometry was there when it settled
  std::uint32_t frames = 1;     // completed by the segment
  TokenSource source = TokenSource::kEstimated;

  double bytes() const { return weights.total() + kv_bytes; }
};

}  // namespace rooflined
